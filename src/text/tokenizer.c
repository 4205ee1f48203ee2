#include "text/tokenizer.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/file.h"
#include "text/split.h"

enum { RANKS_LIMIT = 256 << 20, CONFIG_LIMIT = 64 << 20 };

static void collect_ends(perigee_tokenizer *t) {
    static const char *const names[PRG_TOKENIZER_ENDS] = {"<|im_end|>", "<|end_of_msg|>", "[EOS]", "[EOT]"};
    for (size_t i = 0; i < PRG_TOKENIZER_ENDS; i++) {
        int32_t id = prg_tokenizer_special(t, names[i]);
        if (id >= 0) {
            t->end_ids[t->end_count++] = id;
        }
    }
}

static perigee_status build(perigee_tokenizer *t, const char *family, int64_t vocabulary, const char *ranks,
                            size_t ranks_length, const char *config, size_t config_length, perigee_error **err) {
    t->family = prg_strndup(t->allocator, family, strlen(family));
    t->classes = prg_alloc(t->allocator, PRG_CODE_POINTS);
    if (!t->family || !t->classes) {
        return prg_fail_memory(err);
    }
    prg_char_classes_fill(t->classes);
    perigee_status st = prg_ranks_parse(t->allocator, ranks, ranks_length, "tiktoken.model", &t->ranks, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    int64_t slots = PRG_SPECIAL_SLOTS;
    if (vocabulary > 0) {
        if (vocabulary < t->ranks.count) {
            return prg_fail(err, PERIGEE_E_MISMATCH, "%ld ranks, but a vocabulary of %lld", (long)t->ranks.count,
                            (long long)vocabulary);
        }
        slots = vocabulary - t->ranks.count < slots ? vocabulary - t->ranks.count : slots;
    }
    st = prg_specials_load(&t->specials, t->allocator, family, t->ranks.count, (int32_t)slots, config, config_length,
                           "tokenizer_config.json", err);
    if (st != PERIGEE_OK) {
        return st;
    }
    t->format = prg_chat_format_of(t);
    collect_ends(t);
    return PERIGEE_OK;
}

perigee_status prg_tokenizer_make(prg_allocator *allocator, const char *family, int64_t vocabulary, const char *ranks,
                                  size_t ranks_length, const char *config, size_t config_length,
                                  perigee_tokenizer **out, perigee_error **err) {
    perigee_tokenizer *t = prg_calloc(allocator, 1, sizeof *t);
    if (!t) {
        return prg_fail_memory(err);
    }
    t->allocator = prg_allocator_hold(allocator);
    t->ranks.allocator = allocator;
    prg_arena_init(&t->specials.arena, allocator);
    atomic_init(&t->references, 1);
    perigee_status st = build(t, family, vocabulary, ranks, ranks_length, config, config_length, err);
    if (st != PERIGEE_OK) {
        prg_tokenizer_drop(t);
        return st;
    }
    *out = t;
    return PERIGEE_OK;
}

typedef struct loaded_file {
    char *text; /* NULL: no such file */
    size_t length;
} loaded_file;

/* folder/name as a whole, in the arena. */
static perigee_status load_file(prg_arena *arena, const char *folder, const char *name, size_t limit, loaded_file *out,
                                perigee_error **err) {
    size_t folder_length = strlen(folder), name_length = strlen(name);
    char *path = prg_arena_alloc(arena, folder_length + name_length + 2, 1);
    *out = (loaded_file){NULL, 0};
    if (!path) {
        return prg_fail_memory(err);
    }
    memcpy(path, folder, folder_length);
    path[folder_length] = '/';
    memcpy(path + folder_length + 1, name, name_length);
    perigee_error *error = NULL;
    perigee_status st = prg_file_load(arena, path, NULL, limit, &out->text, &out->length, &error);
    if (st == PERIGEE_E_NOT_FOUND) {
        out->text = NULL;
        perigee_error_free(error);
        return PERIGEE_OK;
    }
    if (err && error) {
        *err = error;
    } else {
        perigee_error_free(error);
    }
    return st;
}

perigee_status prg_tokenizer_open(prg_allocator *allocator, const char *folder, const char *family, int64_t vocabulary,
                                  perigee_tokenizer **out, perigee_error **err) {
    loaded_file ranks, config;
    prg_arena arena;
    prg_arena_init(&arena, allocator);
    *out = NULL;
    perigee_status st = load_file(&arena, folder, "tiktoken.model", RANKS_LIMIT, &ranks, err);
    if (st == PERIGEE_OK && ranks.text) {
        st = load_file(&arena, folder, "tokenizer_config.json", CONFIG_LIMIT, &config, err);
        if (st == PERIGEE_OK) {
            st = prg_tokenizer_make(allocator, family, vocabulary, ranks.text, ranks.length, config.text, config.length,
                                    out, err);
        }
    }
    prg_arena_free(&arena);
    return st;
}

/* The text model's own type, or that of the model around it where only that one is known. */
static const char *family_of(const prg_json *config) {
    const prg_json *outer = prg_json_get(config, "model_type");
    const prg_json *inner = prg_json_get(prg_json_get(config, "text_config"), "model_type");
    static const char *const families[] = {"kimi_k25", "kimi_k3", "kimi_k2", "kimi_linear", "deepseek_v3"};
    const prg_json *both[] = {outer, inner};
    for (size_t i = 0; i < 2; i++) {
        for (size_t f = 0; both[i] && both[i]->kind == PRG_JSON_STRING && f < sizeof families / sizeof *families; f++) {
            if (strcmp(both[i]->text, families[f]) == 0) {
                return families[f];
            }
        }
    }
    return NULL;
}

perigee_status prg_tokenizer_open_alone(prg_allocator *allocator, const char *folder, perigee_tokenizer **out,
                                        perigee_error **err) {
    loaded_file config = {NULL, 0};
    prg_arena arena;
    prg_arena_init(&arena, allocator);
    const prg_json *root = NULL;
    perigee_status st = load_file(&arena, folder, "config.json", CONFIG_LIMIT, &config, err);
    if (st == PERIGEE_OK && !config.text) {
        st = prg_fail_at(err, PERIGEE_E_NOT_FOUND, (prg_where){NULL, folder, -1, -1}, "no config.json");
    }
    if (st == PERIGEE_OK) {
        st = prg_json_parse(&arena, config.text, config.length, 64, "config.json", &root, err);
    }
    if (st == PERIGEE_OK) {
        const char *family = family_of(root);
        int64_t vocabulary = 0;
        if (!prg_json_int(prg_json_get(prg_json_get(root, "text_config"), "vocab_size"), &vocabulary)) {
            prg_json_int(prg_json_get(root, "vocab_size"), &vocabulary);
        }
        st = family ? prg_tokenizer_open(allocator, folder, family, vocabulary, out, err)
                    : prg_fail_at(err, PERIGEE_E_UNSUPPORTED, (prg_where){NULL, "config.json", -1, -1},
                                  "model_type is of no known family");
    }
    if (st == PERIGEE_OK && !*out) {
        st = prg_fail_at(err, PERIGEE_E_NOT_FOUND, (prg_where){NULL, folder, -1, -1}, "no tiktoken.model");
    }
    prg_arena_free(&arena);
    return st;
}

perigee_tokenizer *prg_tokenizer_hold(const perigee_tokenizer *tokenizer) {
    perigee_tokenizer *t = (perigee_tokenizer *)(uintptr_t)tokenizer;
    atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
    return t;
}

void prg_tokenizer_drop(perigee_tokenizer *tokenizer) {
    if (!tokenizer || atomic_fetch_sub_explicit(&tokenizer->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    prg_allocator *allocator = tokenizer->allocator;
    prg_derived *derived = atomic_load_explicit(&tokenizer->derived, memory_order_acquire);
    if (derived) {
        derived->drop(derived);
    }
    prg_free(allocator, tokenizer->family);
    prg_free(allocator, tokenizer->classes);
    prg_ranks_free(&tokenizer->ranks);
    prg_specials_free(&tokenizer->specials);
    prg_free(allocator, tokenizer);
    prg_allocator_drop(allocator);
}

const unsigned char *prg_tokenizer_bytes(const perigee_tokenizer *tokenizer, int32_t id, size_t *length) {
    if (!prg_tokenizer_is_special(tokenizer, id)) {
        return prg_ranks_bytes(&tokenizer->ranks, id, length);
    }
    const prg_special *s = &tokenizer->specials.slots[id - tokenizer->ranks.count];
    *length = s->length;
    return (const unsigned char *)s->name;
}

int32_t prg_tokenizer_special(const perigee_tokenizer *tokenizer, const char *name) {
    return prg_specials_find(&tokenizer->specials, name, strlen(name));
}

/* What one call of the published tokenizers is given: split, and merge each piece. */
static bool encode_part(const perigee_tokenizer *t, const unsigned char *text, size_t length, prg_bpe_scratch *scratch,
                        prg_ids *out) {
    for (size_t at = 0; at < length;) {
        size_t end = prg_split_next(t->classes, text, length, at);
        if (!prg_bpe_encode(&t->ranks, text + at, end - at, scratch, out)) {
            return false;
        }
        at = end;
    }
    return true;
}

static bool encode_markup_part(const perigee_tokenizer *t, const unsigned char *text, size_t length,
                               prg_bpe_scratch *scratch, prg_ids *out) {
    size_t from = 0;
    for (size_t at = 0; at < length;) {
        size_t size;
        int32_t id = prg_specials_match(&t->specials, text + at, length - at, &size);
        if (id < 0) {
            at++;
            continue;
        }
        if (!encode_part(t, text + from, at - from, scratch, out)) {
            return false;
        }
        prg_ids_put(out, id);
        at += size;
        from = at;
    }
    return encode_part(t, text + from, length - from, scratch, out);
}

static perigee_status encode_valid(const perigee_tokenizer *t, const unsigned char *text, size_t length, bool markup,
                                   prg_ids *out, perigee_error **err) {
    prg_bpe_scratch scratch = {t->allocator, NULL, 0};
    prg_cut cut = {0, 0, 0};
    bool good = true;
    for (size_t at = 0; good && at < length;) {
        /* a text that is short in bytes is short in characters */
        size_t end = length <= PRG_CUT_RUN ? length : prg_cut_next(&cut, t->classes, text, length, at);
        good = markup ? encode_markup_part(t, text + at, end - at, &scratch, out)
                      : encode_part(t, text + at, end - at, &scratch, out);
        at = end;
    }
    prg_bpe_scratch_free(&scratch);
    return good ? PERIGEE_OK : prg_fail_memory(err);
}

perigee_status prg_tokenizer_encode(const perigee_tokenizer *tokenizer, const char *text, size_t length, uint32_t flags,
                                    bool markup, prg_ids *out, perigee_error **err) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t good = prg_utf8_check(bytes, length);
    if (good == length) {
        return encode_valid(tokenizer, bytes, length, markup, out, err);
    }
    if (!(flags & PERIGEE_ENCODE_REPLACE)) {
        return prg_fail_at(err, PERIGEE_E_TEXT, (prg_where){NULL, NULL, (int64_t)good, -1},
                           "text is not valid UTF-8 at byte %zu", good);
    }
    prg_buffer replaced;
    prg_buffer_init(&replaced, tokenizer->allocator);
    prg_utf8_replace(&replaced, bytes, length);
    perigee_status st = replaced.failed ? prg_fail_memory(err)
                                        : encode_valid(tokenizer, replaced.data, replaced.length, markup, out, err);
    prg_buffer_free(&replaced);
    return st;
}
