package wire

// Op is the operation of a control message, its first element.
type Op int64

// The control messages of the chapter "Protocol between Connected Nodes", with the elements
// of the tuple after the operation, and the second term after a +. The _TT forms have a
// trace token too.
const (
	OpLink                Op = 1  // FromPid, ToPid
	OpSend                Op = 2  // Unused, ToPid + message
	OpExit                Op = 3  // FromPid, ToPid, Reason
	OpUnlink              Op = 4  // FromPid, ToPid; before UNLINK_ID
	OpNodeLink            Op = 5  //
	OpRegSend             Op = 6  // FromPid, Unused, ToName + message
	OpGroupLeader         Op = 7  // FromPid, ToPid
	OpExit2               Op = 8  // FromPid, ToPid, Reason
	OpSendTT              Op = 12 // Unused, ToPid, TraceToken + message
	OpExitTT              Op = 13 // FromPid, ToPid, TraceToken, Reason
	OpRegSendTT           Op = 16 // FromPid, Unused, ToName, TraceToken + message
	OpExit2TT             Op = 18 // FromPid, ToPid, TraceToken, Reason
	OpMonitorP            Op = 19 // FromPid, ToProc, Ref
	OpDemonitorP          Op = 20 // FromPid, ToProc, Ref
	OpMonitorPExit        Op = 21 // FromProc, ToPid, Ref, Reason
	OpSendSender          Op = 22 // FromPid, ToPid + message
	OpSendSenderTT        Op = 23 // FromPid, ToPid, TraceToken + message
	OpPayloadExit         Op = 24 // FromPid, ToPid + reason
	OpPayloadExitTT       Op = 25 // FromPid, ToPid, TraceToken + reason
	OpPayloadExit2        Op = 26 // FromPid, ToPid + reason
	OpPayloadExit2TT      Op = 27 // FromPid, ToPid, TraceToken + reason
	OpPayloadMonitorPExit Op = 28 // FromProc, ToPid, Ref + reason
	OpSpawnRequest        Op = 29 // ReqId, From, GroupLeader, {M,F,A}, OptList + arguments
	OpSpawnRequestTT      Op = 30 // ReqId, From, GroupLeader, {M,F,A}, OptList, TraceToken + arguments
	OpSpawnReply          Op = 31 // ReqId, To, Flags, Result
	OpSpawnReplyTT        Op = 32 // ReqId, To, Flags, Result, TraceToken
	OpAliasSend           Op = 33 // FromPid, Alias + message
	OpAliasSendTT         Op = 34 // FromPid, Alias, TraceToken + message
	OpUnlinkID            Op = 35 // Id, FromPid, ToPid
	OpUnlinkIDAck         Op = 36 // Id, FromPid, ToPid
)
