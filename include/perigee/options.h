/** @file options.h Options by number or name, with their types, scopes and bounds. */
#ifndef PERIGEE_OPTIONS_H
#define PERIGEE_OPTIONS_H

#include "perigee/option_keys.h"
#include "perigee/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A set of options. Mutable, one thread at a time; a call that takes it only reads it and keeps nothing of it. */
typedef struct perigee_options perigee_options;

/** Type of an option's value. */
typedef enum perigee_option_type {
    PERIGEE_OPTION_TYPE_INT = 0,   /**< int64_t */
    PERIGEE_OPTION_TYPE_FLOAT = 1, /**< double */
    PERIGEE_OPTION_TYPE_STRING = 2 /**< UTF-8, or a path's bytes */
} perigee_option_type;

/** The call that an option belongs to. */
typedef enum perigee_option_scope {
    PERIGEE_SCOPE_CONTEXT = 0, /**< perigee_context_new() */
    PERIGEE_SCOPE_MODEL = 1,   /**< perigee_model_load(), perigee_model_plan() */
    PERIGEE_SCOPE_SESSION = 2  /**< perigee_session_new(), perigee_model_plan() */
} perigee_option_scope;

/** What is known of an option. All strings are static. */
typedef struct perigee_option_description {
    size_t struct_size;         /**< set by the caller to sizeof(perigee_option_description) */
    perigee_option key;         /**< its number */
    perigee_option_type type;   /**< which of the setters takes it */
    perigee_option_scope scope; /**< which calls take it */
    const char *name;           /**< as "threads" */
    const char *help;           /**< one line */
    const char *default_text;   /**< default value as text */
    double minimum;             /**< least value; for a string, least length in bytes */
    double maximum;             /**< greatest value; for a string, greatest length in bytes */
} perigee_option_description;

/** Make an empty set: every option has its default. Freed with perigee_options_free(). Since 0.1. */
PERIGEE_API perigee_status perigee_options_new(perigee_options **out, perigee_error **err);
/** Free a set. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_options_free(perigee_options *options);
/** Set an integer option. PERIGEE_E_ARGUMENT: unknown key or another type; PERIGEE_E_RANGE: out of bounds. Since 0.1.
 */
PERIGEE_API perigee_status perigee_options_set_int(perigee_options *options, perigee_option key, int64_t value,
                                                   perigee_error **err);
/** Set a float option; errors as perigee_options_set_int(). Since 0.1. */
PERIGEE_API perigee_status perigee_options_set_float(perigee_options *options, perigee_option key, double value,
                                                     perigee_error **err);
/** Set a string option (`length` bytes, SIZE_MAX: ends in NUL; copied); errors as perigee_options_set_int(). Since 0.1.
 */
PERIGEE_API perigee_status perigee_options_set_string(perigee_options *options, perigee_option key, const char *value,
                                                      size_t length, perigee_error **err);
/** Set any option by its name from text, as a command line does; both end in NUL. Since 0.1. */
PERIGEE_API perigee_status perigee_options_set_text(perigee_options *options, const char *name, const char *value,
                                                    perigee_error **err);
/** Number of options known. Since 0.1. */
PERIGEE_API size_t perigee_option_count(void);
/** Describe the option of an index below perigee_option_count(). Any thread. Since 0.1. */
PERIGEE_API perigee_status perigee_option_describe(size_t index, perigee_option_description *out, perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
