/* A host, as C99 and as C++17: prints the version of the library that it runs with. */
#include <perigee/perigee.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    perigee_error *error = NULL;
    perigee_options *options = NULL;
    if (perigee_abi_version() != PERIGEE_ABI_VERSION || perigee_options_new(&options, &error) != PERIGEE_OK) {
        return 1;
    }
    if (perigee_options_set_text(options, "threads", "2", &error) != PERIGEE_OK || error != NULL) {
        return 2;
    }
    /* an error comes as a value, and names what it is about */
    perigee_status status = perigee_options_set_text(options, "no_such_option", "1", &error);
    if (status != PERIGEE_E_ARGUMENT || perigee_error_status(error) != status ||
        strstr(perigee_error_message(error), "no_such_option") == NULL) {
        return 3;
    }
    perigee_error_free(error);
    perigee_options_free(options);
    printf("%s\n", perigee_version());
    return 0;
}
