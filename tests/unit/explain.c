/* The table of diagnostics: every wrong example gives its code, every right one compiles, codes are unique. */
#define NEURO_IMPLEMENTATION
#include "neuro.h"
#include "test.h"
#include <string.h>

/* Whether compiling the text reports the code; *errors counts all errors. */
static bool
reports(const char *text, const char *code, int *errors)
{
    neuro_compile_desc desc;
    neuro_compilation *c;
    bool found = false;
    memset(&desc, 0, sizeof desc);
    desc.text = text;
    neuro_compile(&desc, &c);
    for (int i = 0; c != NULL && i < neuro_diagnostic_count(c); i++) {
        neuro_diagnostic d;
        neuro_diagnostic_get(c, i, &d);
        found = found || strcmp(d.code, code) == 0;
    }
    *errors = c != NULL ? neuro_error_count(c) : -1;
    neuro_compilation_free(c);
    return found;
}

int
main(void)
{
    for (int i = 1; i < NRI_N_DIAGS; i++) {
        const nri_diag_row *row = &nri_diag_rows[i];
        int errors;
        CHECK_FOR(neuro_explain(row->code) == row->explain, row->code);
        CHECK_FOR(strlen(row->code) == 5 && (row->code[0] == 'E') == (row->severity == NRI_ERROR), row->code);
        /* <E9> and <ESC> stand for bytes that no text should have */
        if (row->wrong[0] != '\0' && strstr(row->wrong, "<E") == NULL) {
            CHECK_FOR(reports(row->wrong, row->code, &errors), row->code);
        }
        if (row->right[0] != '\0') {
            CHECK_FOR(!reports(row->right, row->code, &errors) && (errors == 0 || reports(row->right, "E0390", &errors)), row->code);
        }
    }
    CHECK(neuro_explain("E9999") == NULL && neuro_explain(NULL) == NULL);
    return test_end();
}
