%% The limits of a client's options, and of what a client asks a node for.
-define(MAX_NODES, 100).
-define(MAX_TIMEOUT, 3600000). % ms
-define(MAX_LEASE, 1048576).   % ids; the maximum that a node hands out in one call
-define(MAX_ANY, 1024).        % ids; any generator hands out this many in one call, since a call may use 1,024 ticks
-define(MAX_AGE, 60000).       % ms
