%% The limits of a client's options, and of what a node is asked for.
-define(MAX_NODES, 100).
-define(MAX_TIMEOUT, 3600000). % ms
-define(MAX_LEASE, 1048576).   % ids; the most that a node gives in one call
-define(MAX_AGE, 60000).       % ms
