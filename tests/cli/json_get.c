/* Reads JSON from standard input and prints the value at a path of names and indices; fails if there is none. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    json_error_t error;
    json_t *document = json_loadf(stdin, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    const json_t *at = document;
    for (int i = 1; i < argc && at; i++) {
        at = json_is_array(at) ? json_array_get(at, strtoul(argv[i], NULL, 10)) : json_object_get(at, argv[i]);
    }
    int status = at ? 0 : 1;
    if (!document) {
        fprintf(stderr, "no JSON: line %d: %s\n", error.line, error.text);
    } else if (json_is_string(at)) {
        printf("%s\n", json_string_value(at));
    } else if (at) {
        char *text = json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY);
        printf("%s\n", text ? text : "");
        free(text);
    }
    json_decref(document);
    return status;
}
