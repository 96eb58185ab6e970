[inputs: ["{mix,.formatter}.exs", "{lib,test,example}/**/*.{ex,exs}"]]
