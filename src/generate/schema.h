/* From a JSON schema to a grammar of the JSON texts that are valid under it. */
#ifndef PRG_GENERATE_SCHEMA_H
#define PRG_GENERATE_SCHEMA_H

#include "base/json.h"
#include "generate/nfa.h"

/* PERIGEE_E_SCHEMA names the place by its JSON pointer, or for text that is no JSON gives the offset. */
perigee_status prg_schema_compile(prg_nfa *nfa, const char *text, size_t length, perigee_error **err);

/* ---- between the files of the compiler ---- */

/* A schema with states of its own, called from wherever it is used. */
typedef struct prg_schema_rule {
    const prg_json *schema;
    uint32_t start;
    const char *path;
} prg_schema_rule;

/* Rule `from` may be in rule `to` before it has taken a byte. */
typedef struct prg_schema_edge {
    uint32_t from, to;
} prg_schema_edge;

typedef struct prg_schema {
    prg_nfa *nfa;
    prg_arena arena;
    const prg_json *root;
    perigee_error **err;
    perigee_status status; /* sticky */
    char *path;            /* JSON pointer of the schema at hand */
    size_t path_length, path_capacity;
    size_t depth;
    prg_schema_rule *rules;
    size_t rule_count, rule_capacity;
    prg_schema_edge *edges;
    size_t edge_count, edge_capacity;
    uint32_t present; /* rule being compiled */
    /* Start states of rules that every schema may use; PRG_NFA_NONE until then. */
    uint32_t space, any, string, number, integer;
} prg_schema;

/* Each puts states between `from` and `to`. `first`: nothing of the present rule has been taken yet. */
void prg_schema_value(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to, bool first);
void prg_schema_any(prg_schema *s, uint32_t from, uint32_t to);
void prg_schema_object(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to);
void prg_schema_array(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to);
void prg_schema_string(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to);
void prg_schema_number(prg_schema *s, const prg_json *schema, bool integer, uint32_t from, uint32_t to);
void prg_schema_constant(prg_schema *s, const prg_json *value, uint32_t from, uint32_t to);
void prg_schema_space(prg_schema *s, uint32_t from, uint32_t to);
void prg_schema_free_string(prg_schema *s, uint32_t from, uint32_t to);
void prg_schema_free_number(prg_schema *s, bool integer, uint32_t from, uint32_t to);
/* The bytes of a string with its quotes; the state behind. */
uint32_t prg_schema_quoted(prg_schema *s, uint32_t from, const char *text, size_t length);
/* A call of the rule of `schema`, which is at the present path. */
void prg_schema_call(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to, bool first);

/* Into a member and back: the path is cut to what enter returned. `name` NULL: an index. */
size_t prg_schema_enter(prg_schema *s, const char *name, size_t length, size_t index);
void prg_schema_leave(prg_schema *s, size_t before);
void prg_schema_refuse(prg_schema *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As prg_schema_refuse() for a keyword of the schema at hand. */
void prg_schema_refuse_at(prg_schema *s, const char *keyword, const char *what);
/* A count of at least 0, or `preset` if the keyword is not there. */
uint32_t prg_schema_count(prg_schema *s, const prg_json *schema, const char *keyword, uint32_t preset);
bool prg_schema_fine(const prg_schema *s);

#endif
