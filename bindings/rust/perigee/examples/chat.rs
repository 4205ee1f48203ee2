//! A chat with one question: chat MODEL QUESTION [TOKENS]
use perigee::*;
use std::io::Write;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 3 {
        return Err("usage: chat MODEL QUESTION [TOKENS]".into());
    }
    let tokens = arguments.get(3).map_or(Ok(256), |n| n.parse())?;

    let context = Context::new(None)?;
    let model = Model::load(&context, &arguments[1], None)?;
    let tokenizer = model.tokenizer().ok_or("the model has no tokenizer")?;
    let question = arguments[2]
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let messages = format!(r#"[{{"role":"user","content":"{}"}}]"#, question);
    let chat = Chat::render(&tokenizer, &messages, None, &ChatOptions::default())?;

    let mut options = GenerationOptions::new(&context)?;
    options.max_tokens(Some(tokens))?;
    let mut parser = Parser::new(&tokenizer, Some(&chat))?;
    let mut session = Session::new(&model, None)?;
    for step in session.generate(chat.ids(), Some(&options))? {
        if let Some(id) = step?.id {
            for delta in parser.push(id)? {
                if let Delta::Thinking(text) | Delta::Content(text) = delta {
                    print!("{}", text);
                    std::io::stdout().flush()?;
                }
            }
        }
    }
    println!();
    Ok(())
}
