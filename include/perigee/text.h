/** @file text.h Text to tokens and back: tokenizer, chat formats, and the parser of what a model says. */
#ifndef PERIGEE_TEXT_H
#define PERIGEE_TEXT_H

#include "perigee/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Ranks and special tokens of a checkpoint. Immutable, counted, shared by any number of threads: every call on it may
 * come from any thread at any time. Decoders, chats and parsers hold it, so handles may be freed in any order.
 *
 * Ids 0 … base-1 are the ranks of tiktoken.model, base … vocabulary-1 special tokens.
 */
typedef struct perigee_tokenizer perigee_tokenizer;

/**
 * The tokenizer of a model, or NULL if its checkpoint has no tiktoken.model. Borrowed: valid as long as the model.
 * Since 0.1.
 */
PERIGEE_API const perigee_tokenizer *perigee_model_tokenizer(const perigee_model *model);

/**
 * Open the tokenizer of the checkpoint folder at `path` (`length` bytes, SIZE_MAX: ends in NUL) without its weights:
 * config.json (family, vocabulary), tiktoken.model and, where there is one, tokenizer_config.json, whose
 * added_tokens_decoder names the special tokens; else they have the published names of the family. Freed with
 * perigee_tokenizer_free(). PERIGEE_E_NOT_FOUND: no config.json or tiktoken.model; PERIGEE_E_FORMAT: a file that is not
 * well-formed; PERIGEE_E_MISMATCH: more ranks than the vocabulary has; PERIGEE_E_UNSUPPORTED: another family. Any
 * thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_tokenizer_open(perigee_context *context, const char *path, size_t length,
                                                  perigee_tokenizer **out, perigee_error **err);
/** Drop the reference that perigee_tokenizer_open() gave. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_tokenizer_free(perigee_tokenizer *tokenizer);

/** What a host needs to know of a tokenizer. Pointers are borrowed from it. */
typedef struct perigee_tokenizer_info {
    size_t struct_size;     /**< set by the caller to sizeof(perigee_tokenizer_info) */
    const char *family;     /**< as in perigee_model_info */
    const char *format;     /**< name of its chat format; see perigee_chat_options */
    int32_t base;           /**< number of ranks: id of the first special token */
    int32_t vocabulary;     /**< number of ids */
    const int32_t *end_ids; /**< ids that end a reply in its chat format */
    size_t end_count;       /**< number of them */
} perigee_tokenizer_info;

/** Fill in `out`. Since 0.1. */
PERIGEE_API perigee_status perigee_tokenizer_get_info(const perigee_tokenizer *tokenizer, perigee_tokenizer_info *out,
                                                      perigee_error **err);

/** Flag of encoding: what is not valid UTF-8 becomes U+FFFD instead of an error. */
#define PERIGEE_ENCODE_REPLACE 1u
/** Flag of decoding: leave special tokens out. */
#define PERIGEE_DECODE_SKIP_SPECIAL 1u

/**
 * Encode text that is only text: the name of a special token in it is spelt out like any other characters. `text` is
 * UTF-8 of `length` bytes (SIZE_MAX: ends in NUL; else NUL bytes are text); it may be NULL if `length` is 0.
 *
 * Writes up to `capacity` ids to `ids` (which may be NULL if `capacity` is 0) and always sets *count to the number that
 * there are, never more than the text's bytes (with PERIGEE_ENCODE_REPLACE: three times as many).
 * PERIGEE_E_BUFFER: `capacity` is less, unless it is 0: that asks for the number and succeeds. PERIGEE_E_TEXT: not
 * valid UTF-8, with the offset, unless `flags` has PERIGEE_ENCODE_REPLACE. Since 0.1.
 */
PERIGEE_API perigee_status perigee_encode_text(const perigee_tokenizer *tokenizer, const char *text, size_t length,
                                               uint32_t flags, int32_t *ids, size_t capacity, size_t *count,
                                               perigee_error **err);
/**
 * As perigee_encode_text(), but names of special tokens become their ids. Not for text of users: it could forge a turn.
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_encode_markup(const perigee_tokenizer *tokenizer, const char *text, size_t length,
                                                 uint32_t flags, int32_t *ids, size_t capacity, size_t *count,
                                                 perigee_error **err);
/**
 * Bytes of `count` ids, one after the other; special tokens give their names unless `flags` has
 * PERIGEE_DECODE_SKIP_SPECIAL. They need not be valid UTF-8, and no NUL is added. Writes up to `capacity` bytes to
 * `bytes` (may be NULL if `capacity` is 0) and always sets *length to the number that there are. PERIGEE_E_BUFFER:
 * `capacity` is less and not 0. PERIGEE_E_TOKEN: an id that there is not. Since 0.1.
 */
PERIGEE_API perigee_status perigee_decode(const perigee_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                          uint32_t flags, char *bytes, size_t capacity, size_t *length,
                                          perigee_error **err);
/**
 * Bytes of one id, borrowed from the tokenizer; of a special token its name. `special` (may be NULL) is set to 1 for a
 * special token, else 0. PERIGEE_E_TOKEN: an id that there is not. Since 0.1.
 */
PERIGEE_API perigee_status perigee_token_bytes(const perigee_tokenizer *tokenizer, int32_t id, const char **bytes,
                                               size_t *length, int32_t *special, perigee_error **err);
/** Id of a special token by its name (`length` bytes, SIZE_MAX: ends in NUL). PERIGEE_E_NOT_FOUND. Since 0.1. */
PERIGEE_API perigee_status perigee_token_id(const perigee_tokenizer *tokenizer, const char *name, size_t length,
                                            int32_t *id, perigee_error **err);

/** Decodes id after id into whole characters. Mutable: one thread at a time, any thread. Holds its tokenizer. */
typedef struct perigee_decoder perigee_decoder;

/** Make a decoder; `flags` as perigee_decode(). Freed with perigee_decoder_free(). Since 0.1. */
PERIGEE_API perigee_status perigee_decoder_new(const perigee_tokenizer *tokenizer, uint32_t flags,
                                               perigee_decoder **out, perigee_error **err);
/**
 * Take the next id. *text receives the characters that it completes (valid UTF-8 of *length bytes, NUL behind, often
 * none), borrowed until the next call on the decoder. The start of a character is held back until its end comes; bytes
 * that cannot be part of one become U+FFFD. PERIGEE_E_TOKEN, PERIGEE_E_MEMORY: nothing was taken. Since 0.1.
 */
PERIGEE_API perigee_status perigee_decoder_push(perigee_decoder *decoder, int32_t id, const char **text, size_t *length,
                                                perigee_error **err);
/** No more ids: what was held back becomes U+FFFD. The decoder then starts anew. Since 0.1. */
PERIGEE_API perigee_status perigee_decoder_flush(perigee_decoder *decoder, const char **text, size_t *length,
                                                 perigee_error **err);
/** Free a decoder. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_decoder_free(perigee_decoder *decoder);

/** Whether the model thinks before it answers. */
typedef enum perigee_thinking {
    PERIGEE_THINKING_DEFAULT = 0, /**< as the format has it */
    PERIGEE_THINKING_ON = 1,
    PERIGEE_THINKING_OFF = 2
} perigee_thinking;

/**
 * How to render a chat; zeros are the defaults. Strings may be NULL; a length of SIZE_MAX: ends in NUL. What a format
 * cannot express is refused with PERIGEE_E_UNSUPPORTED, not left out.
 */
typedef struct perigee_chat_options {
    size_t struct_size;             /**< set by the caller to sizeof(perigee_chat_options) */
    perigee_thinking thinking;      /**< on and off: kimi_k3, kimi_k25 */
    int32_t omit_generation_prompt; /**< 1: end behind the last message, not in an open answer of the assistant */
    /** "kimi_k2", "kimi_k2_thinking", "kimi_k25", "moonlight", "kimi_linear" or "kimi_k3"; NULL: the tokenizer's own */
    const char *format;
    size_t format_length;          /**< of `format` */
    const char *effort;            /**< kimi_k3 with thinking: "low", "high" or "max"; NULL: not mentioned */
    size_t effort_length;          /**< of `effort` */
    const char *tool_choice;       /**< "auto"; kimi_k3: also "required" and "none"; NULL: auto */
    size_t tool_choice_length;     /**< of `tool_choice` */
    const char *response_format;   /**< kimi_k3: OpenAI's response_format as JSON; others: type text only */
    size_t response_format_length; /**< of `response_format` */
} perigee_chat_options;

/** A rendered conversation. Immutable: any thread. Holds its tokenizer. */
typedef struct perigee_chat perigee_chat;

/**
 * Render a conversation. `messages` is a JSON array in OpenAI's form: role, name, content (a string, null, or an array
 * of text parts), reasoning_content, tool_calls, tool_call_id. `tools` is a JSON array of functions, or NULL. Control
 * tokens go in by id; what the caller gives is only ever text. Freed with perigee_chat_free().
 *
 * Errors: PERIGEE_E_FORMAT (not JSON, with the offset), PERIGEE_E_ARGUMENT (JSON of another form), PERIGEE_E_TEXT,
 * PERIGEE_E_UNSUPPORTED (images, or what the format or the vocabulary does not have). Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_chat_render(const perigee_tokenizer *tokenizer, const char *messages,
                                               size_t messages_length, const char *tools, size_t tools_length,
                                               const perigee_chat_options *options, perigee_chat **out,
                                               perigee_error **err);
/** Its ids, *count of them (`count` may be NULL), NULL if there are none; borrowed from the chat. Since 0.1. */
PERIGEE_API const int32_t *perigee_chat_ids(const perigee_chat *chat, size_t *count);
/**
 * The prompt as text for people (control tokens by name, *length bytes, NUL behind); borrowed from the chat. It does
 * not tell a control token from the same characters in a message: never encode it. Since 0.1.
 */
PERIGEE_API const char *perigee_chat_text(const perigee_chat *chat, size_t *length);

/** A stretch of the prompt: one control token, or one text that was encoded on its own. */
typedef struct perigee_chat_segment {
    size_t struct_size; /**< set by the caller to sizeof(perigee_chat_segment) */
    const char *text;   /**< not NUL-terminated; borrowed from the chat */
    size_t length;      /**< of `text`, in bytes */
    int32_t control;    /**< 1 for a control token, else 0 */
    size_t first;       /**< index of its first id */
    size_t count;       /**< number of its ids */
} perigee_chat_segment;

/** Number of segments. Since 0.1. */
PERIGEE_API size_t perigee_chat_segment_count(const perigee_chat *chat);
/** Segment `index`. Since 0.1. */
PERIGEE_API perigee_status perigee_chat_get_segment(const perigee_chat *chat, size_t index, perigee_chat_segment *out,
                                                    perigee_error **err);
/** Free a chat. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_chat_free(perigee_chat *chat);

/**
 * Reads the answer of a model, id by id, into reasoning, answer and tool calls. It never fails on what a model says:
 * missing closers are made up for, and no control token leaks into text. Mutable: one thread at a time, any thread.
 * Holds its tokenizer.
 */
typedef struct perigee_parser perigee_parser;

/** What a delta says. */
typedef enum perigee_delta_kind {
    PERIGEE_DELTA_THINKING = 1,  /**< more reasoning: text */
    PERIGEE_DELTA_CONTENT = 2,   /**< more of the answer: text */
    PERIGEE_DELTA_CALL = 3,      /**< a tool call begins: call, name, id */
    PERIGEE_DELTA_ARGUMENTS = 4, /**< more of a call's arguments, JSON text: call, text */
    PERIGEE_DELTA_CALL_END = 5,  /**< a tool call is whole: call */
    PERIGEE_DELTA_END = 6        /**< the message has ended */
} perigee_delta_kind;

/** A step of the answer, in the order in which it came. Strings end in NUL. */
typedef struct perigee_delta {
    size_t struct_size;      /**< set by the caller to sizeof(perigee_delta) */
    perigee_delta_kind kind; /**< says which of the others apply */
    size_t call;             /**< index of the tool call, from 0 */
    const char *text;        /**< whole characters of UTF-8; "" where it does not apply */
    size_t length;           /**< of `text`, in bytes */
    const char *name;        /**< of the function; "" where it does not apply */
    const char *id;          /**< of the call, as a tool message refers to it; "" where it does not apply */
} perigee_delta;

/**
 * Make a parser for the answer to `chat`, which says the format, whether thinking is open, and how many calls there
 * were before; it is not kept. With NULL: the tokenizer's own format behind its default generation prompt. Freed with
 * perigee_parser_free(). PERIGEE_E_MISMATCH: the chat is of another tokenizer. Since 0.1.
 */
PERIGEE_API perigee_status perigee_parser_new(const perigee_tokenizer *tokenizer, const perigee_chat *chat,
                                              perigee_parser **out, perigee_error **err);
/**
 * Take the next id; *count (may be NULL) receives the number of deltas, which perigee_parser_get_delta() gives until
 * the next push or finish. After PERIGEE_DELTA_END ids are ignored. PERIGEE_E_TOKEN: an id that there is not, nothing
 * was taken. PERIGEE_E_MEMORY: the parser is no longer usable. Since 0.1.
 */
PERIGEE_API perigee_status perigee_parser_push(perigee_parser *parser, int32_t id, size_t *count, perigee_error **err);
/**
 * No more ids: close what is open, and end the message if it has not ended. `count` as perigee_parser_push().
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_parser_finish(perigee_parser *parser, size_t *count, perigee_error **err);
/** Delta `index` of the last push or finish; its strings are borrowed until the next one. Since 0.1. */
PERIGEE_API perigee_status perigee_parser_get_delta(const perigee_parser *parser, size_t index, perigee_delta *out,
                                                    perigee_error **err);
/** 1 once an end token was seen, else 0. Since 0.1. */
PERIGEE_API int32_t perigee_parser_ended(const perigee_parser *parser);
/**
 * The message so far in OpenAI's form, as JSON: role, content (null if there are only tool calls), reasoning_content
 * and tool_calls where there are any. NUL behind; borrowed until the next call on the parser. Since 0.1.
 */
PERIGEE_API perigee_status perigee_parser_message(perigee_parser *parser, const char **json, size_t *length,
                                                  perigee_error **err);
/** Free a parser. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_parser_free(perigee_parser *parser);

#ifdef __cplusplus
}
#endif

#endif
