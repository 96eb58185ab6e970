import com.ericsson.otp.erlang.*;

/**
 * A Java node that calls the server: Caller NODE COOKIE CHECK... Each check
 * prints "CHECK name ok" or "CHECK name FAIL Reason".
 */
public final class Caller {
    /** The limit for an answer, in ms; only a node that hangs takes this long. */
    private static final int PATIENCE = 120000;

    private static final OtpErlangAtom USER = new OtpErlangAtom("user");

    private final String peer;
    private final OtpNode node;
    private final OtpMbox mbox;

    private Caller(String name, String peer, String cookie) throws Exception {
        this.peer = peer;
        node = new OtpNode(name, cookie);
        mbox = node.createMbox();
    }

    public static void main(String[] args) throws Exception {
        Caller caller = new Caller("java@127.0.0.1", args[0], args[1]);
        for (int i = 2; i < args.length; i++) {
            try {
                caller.check(args[i]);
                System.out.println("CHECK " + args[i] + " ok");
            } catch (Throwable e) {
                System.out.println("CHECK " + args[i] + " FAIL " + e);
                e.printStackTrace();
            }
        }
        System.exit(0);
    }

    private void check(String name) throws Exception {
        switch (name) {
        case "ping":
            want(node.ping(peer, PATIENCE), "pong");
            break;
        case "get":
            get();
            break;
        case "text":
            OtpErlangTuple text = (OtpErlangTuple) call("flake", get(62));
            want(text.elementAt(0), "ok");
            want(((OtpErlangString) text.elementAt(1)).stringValue().matches("[0-9A-Za-z]{10,22}"), "text in base 62");
            break;
        case "unknown":
            want(call("flake", new OtpErlangAtom("hello")), "ok");
            want(call("flake", get(63)), "{error,badarg}");
            mbox.send("nobody", peer, new OtpErlangAtom("message"));
            want(node.ping(peer, PATIENCE), "pong");
            break;
        case "rpc":
            rpc();
            break;
        case "watch":
            watch();
            break;
        case "again":
            again();
            break;
        case "refused":
            want(!node.ping(peer, 10000), "pang");
            break;
        default:
            throw new IllegalArgumentException(name);
        }
    }

    private static void want(boolean is, String what) {
        if (!is) {
            throw new AssertionError("not " + what);
        }
    }

    private static void want(Object got, String text) {
        want(got.toString().equals(text), text + ", but " + got);
    }

    private static OtpErlangTuple tuple(OtpErlangObject... elements) {
        return new OtpErlangTuple(elements);
    }

    private static OtpErlangTuple get(int base) {
        return tuple(new OtpErlangAtom("get"), new OtpErlangInt(base));
    }

    private OtpErlangObject receive() throws Exception {
        OtpErlangObject message = mbox.receive(PATIENCE);
        want(message != null, "answered");
        return message;
    }

    /** Does what gen_server:call does. */
    private OtpErlangObject call(String server, OtpErlangObject request) throws Exception {
        OtpErlangRef ref = node.createRef();
        mbox.send(server, peer, tuple(new OtpErlangAtom("$gen_call"), tuple(mbox.self(), ref), request));
        OtpErlangTuple answer = (OtpErlangTuple) receive();
        want(answer.elementAt(0).equals(ref), "the answer to this call");
        return answer.elementAt(1);
    }

    private void get() throws Exception {
        byte[] before = new byte[16];
        for (int i = 0; i < 1000; i++) {
            OtpErlangTuple answer = (OtpErlangTuple) call("flake", new OtpErlangAtom("get"));
            want(answer.elementAt(0), "ok");
            byte[] id = ((OtpErlangBinary) answer.elementAt(1)).binaryValue();
            want(id.length == 16 && java.util.Arrays.compareUnsigned(before, id) < 0, "increasing");
            before = id;
        }
    }

    /** Calls functions through OtpConnection.sendRPC, and through gen_server:call of rex. */
    private void rpc() throws Exception {
        OtpErlangList none = new OtpErlangList();
        OtpErlangObject call = tuple(new OtpErlangAtom("call"), new OtpErlangAtom("erlang"), new OtpErlangAtom("node"), none, USER);
        mbox.send("rex", peer, tuple(mbox.self(), call));
        want(receive(), "{rex,'" + peer + "'}");
        want(call("rex", call), "'" + peer + "'");
        OtpSelf self = new OtpSelf("javarpc@127.0.0.1", node.cookie());
        OtpConnection connection = self.connect(new OtpPeer(peer));
        connection.sendRPC("flake_util", "as_list", new OtpErlangObject[] {new OtpErlangInt(255), new OtpErlangInt(16)});
        want(connection.receiveRPC(), "\"FF\"");
        connection.sendRPC("no_such_module", "f", none);
        want(connection.receiveRPC(), "{badrpc,{'EXIT',{undef,[{no_such_module,f,[],[]}]}}}");
        connection.close();
    }

    /** Links to the server and unlinks from it, then links to it again and kills it. */
    private void watch() throws Exception {
        OtpErlangObject whereis = tuple(new OtpErlangAtom("call"), new OtpErlangAtom("erlang"), new OtpErlangAtom("whereis"),
            new OtpErlangList(new OtpErlangAtom("flake")), USER);
        OtpErlangPid server = (OtpErlangPid) call("rex", whereis);
        mbox.link(server);
        mbox.unlink(server);
        want(call("flake", new OtpErlangAtom("hello")), "ok");
        mbox.link(server);
        mbox.exit(server, "kill");
        try {
            throw new AssertionError(String.valueOf(mbox.receive(PATIENCE)));
        } catch (OtpErlangExit e) {
            want(e.reason(), "killed");
        }
    }

    /** Connects repeatedly under one name, while the previous connection still exists. */
    private void again() throws Exception {
        OtpSelf self = new OtpSelf("javaagain@127.0.0.1", node.cookie());
        OtpConnection[] all = new OtpConnection[5];
        for (int i = 0; i < all.length; i++) {
            all[i] = self.connect(new OtpPeer(peer));
            all[i].sendRPC("erlang", "node", new OtpErlangList());
            want(all[i].receiveRPC(), "'" + peer + "'");
        }
    }
}
