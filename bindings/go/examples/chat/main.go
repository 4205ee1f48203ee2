// A chat with one question: chat MODEL QUESTION [TOKENS]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"perigee.example/perigee"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 3 {
		return fmt.Errorf("usage: chat MODEL QUESTION [TOKENS]")
	}
	tokens := 256
	if len(arguments) > 3 {
		var err error
		if tokens, err = strconv.Atoi(arguments[3]); err != nil {
			return err
		}
	}
	model, err := perigee.Load(arguments[1])
	if err != nil {
		return err
	}
	defer model.Close()
	tokenizer := model.Tokenizer()
	if tokenizer == nil {
		return fmt.Errorf("the model has no tokenizer")
	}
	messages, err := json.Marshal([]map[string]string{{"role": "user", "content": arguments[2]}})
	if err != nil {
		return err
	}
	chat, err := tokenizer.Render(string(messages), "", perigee.ChatOptions{})
	if err != nil {
		return err
	}
	parser, err := tokenizer.NewParser(chat)
	if err != nil {
		return err
	}
	session, err := model.NewSession()
	if err != nil {
		return err
	}
	defer session.Close()
	reply, err := session.Generate(context.Background(), chat.IDs(), perigee.Generate{MaxTokens: tokens})
	if err != nil {
		return err
	}
	defer reply.Close()
	for reply.Next() {
		deltas, err := parser.Push(reply.Step().ID)
		if err != nil {
			return err
		}
		for _, d := range deltas {
			if d.Kind == perigee.DeltaThinking || d.Kind == perigee.DeltaContent {
				fmt.Print(d.Text)
			}
		}
	}
	fmt.Println()
	return reply.Err()
}
