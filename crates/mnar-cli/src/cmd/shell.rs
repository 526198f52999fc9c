//! `mnar completions` and `mnar man`.

use crate::Outcome;
use crate::args::Cli;
use crate::output;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

pub(crate) fn completions(shell: Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mnar", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

/// One page: the program, then every command.
pub(crate) fn man() -> Result<Outcome> {
    let mut program = Cli::command();
    program.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(program.clone()).render(&mut page)?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let man = clap_mangen::Man::new(command.clone());
        let heading = format!(".SH \"MNAR {}\"\n", command.get_name().to_uppercase());
        page.extend_from_slice(heading.as_bytes());
        man.render_description_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    output::print(&String::from_utf8_lossy(&page))?;
    Ok(Outcome::Done)
}
