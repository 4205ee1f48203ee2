#include "text/specials.h"

#include <string.h>

#include "base/buffer.h"
#include "base/checked_math.h"
#include "base/error.h"

enum { K2 = 1, K25 = 2, K3 = 4 };

typedef struct known_special {
    unsigned families;
    int slot;
    const char *name;
} known_special;

static const known_special known[] = {
#define PRG_SPECIAL(families, slot, name) {families, slot, name},
#include "text/specials.def"
#undef PRG_SPECIAL
};

static unsigned family_bit(const char *family) {
    return strcmp(family, "kimi_k3") == 0 ? K3 : strcmp(family, "kimi_k25") == 0 ? K25 : K2;
}

static bool set_name(prg_specials *s, int32_t slot, const char *name, size_t length, bool reserved) {
    char *copy = prg_arena_strndup(&s->arena, name, length);
    if (copy) {
        s->slots[slot] = (prg_special){copy, length, reserved};
    }
    return copy != NULL;
}

static perigee_status load_known(prg_specials *s, const char *family, perigee_error **err) {
    unsigned bit = family_bit(family);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const known_special *k = &known[i];
        if ((k->families & bit) && k->slot < s->count && !set_name(s, k->slot, k->name, strlen(k->name), false)) {
            return prg_fail_memory(err);
        }
    }
    return PERIGEE_OK;
}

static perigee_status add_token(prg_specials *s, const prg_json *token, const char *file, perigee_error **err) {
    prg_where where = {NULL, file, -1, -1};
    int64_t id = 0;
    bool digits = token->key_length > 0 && token->key_length < 10;
    for (size_t i = 0; digits && i < token->key_length; i++) {
        digits = token->key[i] >= '0' && token->key[i] <= '9';
        id = id * 10 + (token->key[i] - '0');
    }
    const prg_json *content = prg_json_get(token, "content");
    if (!digits || !content || content->kind != PRG_JSON_STRING || content->length == 0) {
        return prg_fail_at(err, PERIGEE_E_FORMAT, where, "added_tokens_decoder: \"%s\" is no token with content",
                           token->key);
    }
    if (id < s->base) {
        return prg_fail_at(err, PERIGEE_E_FORMAT, where, "added_tokens_decoder: token %lld lies among the %ld ranks",
                           (long long)id, (long)s->base);
    }
    if (id - s->base >= s->count) {
        return PERIGEE_OK; /* no row of the embedding */
    }
    return set_name(s, (int32_t)(id - s->base), content->text, content->length, false) ? PERIGEE_OK
                                                                                       : prg_fail_memory(err);
}

static perigee_status load_config(prg_specials *s, const char *family, const char *config, size_t length,
                                  const char *file, perigee_error **err) {
    prg_arena arena;
    prg_arena_init(&arena, s->arena.allocator);
    const prg_json *root = NULL;
    perigee_status st = prg_json_parse(&arena, config, length, 64, file, &root, err);
    if (st == PERIGEE_OK) {
        const prg_json *added = prg_json_get(root, "added_tokens_decoder");
        if (!added) {
            st = load_known(s, family, err);
        } else if (added->kind != PRG_JSON_OBJECT) {
            st = prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){NULL, file, -1, -1},
                             "added_tokens_decoder is no object");
        } else {
            for (const prg_json *t = added->first; t && st == PERIGEE_OK; t = t->next) {
                st = add_token(s, t, file, err);
            }
        }
    }
    prg_arena_free(&arena);
    return st;
}

static perigee_status name_reserved(prg_specials *s, perigee_error **err) {
    prg_buffer name;
    prg_buffer_init(&name, s->arena.allocator);
    bool good = true;
    for (int32_t i = 0; good && i < s->count; i++) {
        if (!s->slots[i].name) {
            name.length = 0;
            prg_buffer_puts(&name, "<|reserved_token_");
            prg_buffer_put_int(&name, s->base + i);
            prg_buffer_puts(&name, "|>");
            good = !name.failed && set_name(s, i, (const char *)name.data, name.length, true);
        }
    }
    prg_buffer_free(&name);
    return good ? PERIGEE_OK : prg_fail_memory(err);
}

static void index_names(prg_specials *s) {
    for (int32_t i = 0; i < s->count; i++) {
        const unsigned char *name = (const unsigned char *)s->slots[i].name;
        s->first[name[0]] = true;
        s->second[name[1]] = true; /* the NUL behind a name of one byte */
        int32_t at = i;
        while (at > 0 && s->slots[s->longest_first[at - 1]].length < s->slots[i].length) {
            s->longest_first[at] = s->longest_first[at - 1];
            at--;
        }
        s->longest_first[at] = (uint8_t)i;
    }
}

perigee_status prg_specials_load(prg_specials *specials, prg_allocator *allocator, const char *family, int32_t base,
                                 int32_t count, const char *config, size_t length, const char *file,
                                 perigee_error **err) {
    memset(specials, 0, sizeof *specials);
    prg_arena_init(&specials->arena, allocator);
    specials->base = base;
    specials->count = count;
    perigee_status st =
        config ? load_config(specials, family, config, length, file, err) : load_known(specials, family, err);
    if (st == PERIGEE_OK) {
        st = name_reserved(specials, err);
    }
    if (st == PERIGEE_OK) {
        index_names(specials);
    }
    return st;
}

void prg_specials_free(prg_specials *specials) {
    prg_arena_free(&specials->arena);
}

int32_t prg_specials_find(const prg_specials *specials, const char *name, size_t length) {
    for (int32_t i = 0; i < specials->count; i++) {
        const prg_special *s = &specials->slots[i];
        if (s->length == length && memcmp(s->name, name, length) == 0) {
            return specials->base + i;
        }
    }
    return -1;
}

int32_t prg_specials_match(const prg_specials *specials, const unsigned char *text, size_t length, size_t *size) {
    if (!specials->first[text[0]]) {
        return -1;
    }
    bool one_byte = specials->second[0];
    if (!one_byte && (length < 2 || !specials->second[text[1]])) {
        return -1;
    }
    for (int32_t i = 0; i < specials->count; i++) {
        const prg_special *s = &specials->slots[specials->longest_first[i]];
        if (s->length <= length && memcmp(s->name, text, s->length) == 0) {
            *size = s->length;
            return specials->base + specials->longest_first[i];
        }
    }
    return -1;
}
