/* A C node that calls the server: cnode NODE CHECK..., with CALLER_COOKIE set. Each check prints
 * "CHECK name ok" or "CHECK name FAIL Reason". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ei.h>

static ei_cnode self;
static const char *node;
static int fd = -1;
static const char *failure; /* of the current check */

static int fail(const char *why)
{
    if (failure == NULL)
        failure = why;
    return -1;
}

static int up(void)
{
    static short creation = 1;
    const char *cookie = getenv("CALLER_COOKIE");
    if (ei_connect_xinit(&self, "127.0.0.1", "cnode", "cnode@127.0.0.1", NULL, cookie, creation++) < 0)
        return fail("init");
    fd = ei_connect(&self, (char *)node);
    return fd < 0 ? fail("connect") : 0;
}

/* receive takes the next message. The library answers ticks. */
static int receive(ei_x_buff *x)
{
    erlang_msg msg;
    int got;
    do {
        x->index = 0;
        got = ei_xreceive_msg(fd, &msg, x);
    } while (got == ERL_TICK);
    if (got != ERL_MSG || msg.msgtype != ERL_SEND)
        return fail("no message");
    return 0;
}

/* call does what gen_server:call does, and leaves index at the reply in x. */
static int call(char *server, ei_x_buff *request, ei_x_buff *x, int *index)
{
    static unsigned int count;
    erlang_ref ref, tag;
    ei_x_buff m;
    int version, arity;

    memset(&ref, 0, sizeof ref);
    strcpy(ref.node, ei_thisnodename(&self));
    ref.creation = ei_self(&self)->creation;
    ref.len = 3;
    ref.n[0] = ++count;
    ei_x_new_with_version(&m);
    ei_x_encode_tuple_header(&m, 3);
    ei_x_encode_atom(&m, "$gen_call");
    ei_x_encode_tuple_header(&m, 2);
    ei_x_encode_pid(&m, ei_self(&self));
    ei_x_encode_ref(&m, &ref);
    ei_x_append(&m, request);
    int sent = ei_reg_send(&self, fd, server, m.buff, m.index);
    ei_x_free(&m);
    if (sent < 0)
        return fail("send");
    if (receive(x) < 0)
        return -1;
    *index = 0;
    if (ei_decode_version(x->buff, index, &version) < 0 || ei_decode_tuple_header(x->buff, index, &arity) < 0 ||
        arity != 2 || ei_decode_ref(x->buff, index, &tag) < 0)
        return fail("not an answer");
    if (ei_cmp_refs(&tag, &ref) != 0)
        return fail("another answer");
    return 0;
}

/* want checks that the term at index is the one in text. */
static int want(const ei_x_buff *x, int index, const char *text)
{
    char *got = NULL;
    if (ei_s_print_term(&got, x->buff, &index) < 0 || strcmp(got, text) != 0) {
        fprintf(stderr, "got %s, want %s\n", got, text);
        return fail("another term");
    }
    free(got);
    return 0;
}

/* answers calls a server with a term, in the syntax of ei_x_format, and checks that text is the reply. */
static int answers(char *server, const char *request, const char *text)
{
    ei_x_buff q, x;
    int index, ok;
    ei_x_new(&q);
    ei_x_new(&x);
    ei_x_format_wo_ver(&q, request);
    ok = call(server, &q, &x, &index);
    if (ok == 0)
        ok = want(&x, index, text);
    ei_x_free(&q);
    ei_x_free(&x);
    return ok;
}

static int ping(void) { return answers("net_kernel", "{is_auth,'cnode@127.0.0.1'}", "yes"); }

static int get(void)
{
    ei_x_buff q, x;
    int i, index, arity;
    unsigned char before[16] = {0}, id[16];
    char word[MAXATOMLEN];
    long size;
    ei_x_new(&q);
    ei_x_new(&x);
    ei_x_format_wo_ver(&q, "get");
    for (i = 0; i < 1000 && failure == NULL; i++) {
        if (call("flake", &q, &x, &index) < 0)
            break;
        if (ei_decode_tuple_header(x.buff, &index, &arity) < 0 || arity != 2 ||
            ei_decode_atom(x.buff, &index, word) < 0 || strcmp(word, "ok") != 0 ||
            ei_decode_binary(x.buff, &index, id, &size) < 0 || size != sizeof id)
            fail("no id");
        else if (memcmp(before, id, sizeof id) >= 0)
            fail("ids do not increase");
        memcpy(before, id, sizeof id);
    }
    ei_x_free(&q);
    ei_x_free(&x);
    return 0;
}

static int text(void)
{
    ei_x_buff q, x;
    int index, arity;
    char word[MAXATOMLEN], digits[100];
    ei_x_new(&q);
    ei_x_new(&x);
    ei_x_format_wo_ver(&q, "{get,62}");
    if (call("flake", &q, &x, &index) < 0)
        return -1;
    if (ei_decode_tuple_header(x.buff, &index, &arity) < 0 || ei_decode_atom(x.buff, &index, word) < 0 ||
        x.buff[index] != ERL_STRING_EXT || ei_decode_string(x.buff, &index, digits) < 0 || strlen(digits) < 10)
        return fail("no text");
    ei_x_free(&q);
    ei_x_free(&x);
    return 0;
}

static int unknown(void)
{
    answers("flake", "{get,63}", "{error, badarg}");
    answers("flake", "hello", "ok");
    answers("flake", "{get,[{a,1.5},\"text\"]}", "{error, badarg}");
    return ei_send_reg_encoded(fd, ei_self(&self), "nobody", "\203j", 2) < 0 ? fail("send") : ping();
}

/* listed requests ids as a list, and checks their number and size; if octets is 0, the ids are digits. */
static int listed(const char *request, int want, int octets)
{
    ei_x_buff q, x;
    int index, arity, i;
    char word[MAXATOMLEN], id[200];
    long size;
    ei_x_new(&q);
    ei_x_new(&x);
    ei_x_format_wo_ver(&q, request);
    if (call("flake", &q, &x, &index) < 0)
        return -1;
    if (ei_decode_tuple_header(x.buff, &index, &arity) < 0 || ei_decode_atom(x.buff, &index, word) < 0 ||
        strcmp(word, "ok") != 0 || ei_decode_list_header(x.buff, &index, &arity) < 0 || arity != want)
        return fail(request);
    for (i = 0; i < arity && failure == NULL; i++) {
        if (octets > 0 ? ei_decode_binary(x.buff, &index, id, &size) < 0 || size != octets
                       : ei_decode_string(x.buff, &index, id) < 0 || strlen(id) < 15)
            fail(request);
    }
    if (ei_decode_list_header(x.buff, &index, &arity) < 0 || arity != 0 || index != x.index)
        fail(request);
    ei_x_free(&q);
    ei_x_free(&x);
    return 0;
}

static int calls(void)
{
    listed("{get_many,3}", 3, 16);
    listed("{get_many,65536}", 65536, 16);
    listed("{get_many,65536,2}", 65536, 0);
    listed("{get_many,3,canonical}", 3, 0);
    answers("flake", "{notional,1}", "{ok, #Bin<0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0>}");
    answers("flake", "{decompose,\"1070003\",16}", "{ok, [{time, 0}, {worker, 263}, {sequence, 3}]}");
    answers("flake", "{lease,1048577}", "{error, badarg}");
    return answers("flake", "{get_many,0}", "{error, badarg}");
}

static int apply(char *module, char *function, const char *args, const char *result)
{
    ei_x_buff a, x;
    ei_x_new(&a);
    ei_x_new(&x);
    ei_x_format_wo_ver(&a, args);
    int ok = ei_rpc(&self, fd, module, function, a.buff, a.index, &x);
    if (ok < 0)
        fail("ei_rpc");
    else
        want(&x, 0, result);
    ei_x_free(&a);
    ei_x_free(&x);
    return ok;
}

static int rpc(void)
{
    char result[MAXATOMLEN + 2];
    snprintf(result, sizeof result, "'%s'", node);
    apply("erlang", "node", "[]", result);
    apply("flake_util", "as_list", "[255,16]", "\"FF\"");
    return apply("os", "cmd", "[\"ls\"]", "{badrpc, {'EXIT', {undef, [{os, cmd, [\"ls\"], []}]}}}");
}

/* again connects under the same name, while the previous connection still exists. */
static int again(void)
{
    int i;
    for (i = 0; i < 10; i++) {
        if (up() < 0 || ping() < 0)
            return -1;
    }
    return 0;
}

/* idle receives ticks, which the library answers. */
static int idle(void)
{
    erlang_msg msg;
    ei_x_buff x;
    int i;
    ei_x_new(&x);
    for (i = 0; i < 3; i++) {
        x.index = 0;
        if (ei_xreceive_msg(fd, &msg, &x) != ERL_TICK)
            return fail("not a tick");
    }
    ei_x_free(&x);
    return ping();
}

static int refused(void)
{
    int ok = ei_connect(&self, (char *)node);
    return ok < 0 ? 0 : fail("let in");
}

static const struct {
    const char *name;
    int (*run)(void);
} checks[] = {{"ping", ping}, {"get", get},     {"text", text}, {"unknown", unknown},
              {"rpc", rpc},   {"again", again}, {"idle", idle}, {"refused", refused}, {"calls", calls}};

int main(int argc, char **argv)
{
    size_t i;
    int a;
    if (argc < 3 || ei_init() != 0)
        return 1;
    node = argv[1];
    up();
    for (a = 2; a < argc; a++) {
        if (strcmp(argv[a], "refused") == 0)
            failure = NULL;
        for (i = 0; i < sizeof checks / sizeof *checks; i++) {
            if (strcmp(argv[a], checks[i].name) == 0 && failure == NULL)
                checks[i].run();
        }
        if (failure == NULL)
            printf("CHECK %s ok\n", argv[a]);
        else
            printf("CHECK %s FAIL %s\n", argv[a], failure);
        fflush(stdout);
    }
    return failure != NULL;
}
