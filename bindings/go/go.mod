module perigee.example/perigee

go 1.19
