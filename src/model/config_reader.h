/* Values of config.json with their bounds. The first fault stays; later reads return their defaults. */
#ifndef PRG_MODEL_CONFIG_READER_H
#define PRG_MODEL_CONFIG_READER_H

#include "base/json.h"

typedef struct prg_config_reader {
    const prg_json *top, *text; /* the same where nothing is nested */
    const char *file;
    perigee_status status;
    perigee_error **err;
} prg_config_reader;

/* PERIGEE_E_CONFIG or another status, with a message that names the key. */
void prg_config_fail(prg_config_reader *r, perigee_status status, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The member, or NULL where it is absent or null. */
const prg_json *prg_config_get(const prg_json *object, const char *key);
enum { PRG_REQUIRED = -1 };
/* A whole number from `minimum` to `maximum`. `preset` PRG_REQUIRED: there must be one. */
int64_t prg_config_int(prg_config_reader *r, const prg_json *object, const char *key, int64_t minimum, int64_t maximum,
                       int64_t preset);
/* A number above `above`, and at most `maximum`. A NaN as preset: there must be one. */
double prg_config_real(prg_config_reader *r, const prg_json *object, const char *key, double above, double maximum,
                       double preset);
bool prg_config_flag(prg_config_reader *r, const prg_json *object, const char *key, bool preset);
/* A string that is one of the choices (NULL ends them): its index, or `preset` where there is none. */
int prg_config_choice(prg_config_reader *r, const prg_json *object, const char *key, const char *const *choices,
                      int preset);

#endif
