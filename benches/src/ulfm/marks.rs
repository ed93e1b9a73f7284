//! The lines of `ulfm_recovery`, and what follows from them.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::job::{Job, Task};
use super::sides::Figures;

/// What the ranks of one job have said: each word has its value for each rank that said it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Marks(BTreeMap<String, BTreeMap<usize, String>>);

impl FromStr for Marks {
    type Err = String;

    /// Of lines `WHAT,RANK,VALUE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut marks = Self::default();
        for line in text.lines() {
            let cells: Vec<&str> = line.split(',').collect();
            let (what, rank, value) = match cells[..] {
                [what, rank, value] => (what, rank.parse::<usize>(), value),
                _ => return Err(format!("'{line}' is no mark")),
            };
            let rank = rank.map_err(|_| format!("'{line}' is of no rank"))?;
            if marks.0.entry(what.to_owned()).or_default().insert(rank, value.to_owned()).is_some() {
                return Err(format!("'{what}' of rank {rank} comes twice"));
            }
        }
        Ok(marks)
    }
}

impl Marks {
    /// Whether all ranks that live at the end have said all.
    pub(super) fn are_complete(&self, job: &Job) -> bool {
        self.who("answer").len() == living(job).len()
    }

    /// The answer that all ranks have.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(super) fn answer(&self, job: &Job) -> Result<&str, String> {
        self.all_of("answer", &living(job))?;
        let mut answers: Vec<&str> = self.0["answer"].values().map(String::as_str).collect();
        answers.dedup();
        match answers[..] {
            [answer] => Ok(answer),
            _ => Err(format!("ranks differ: {}", answers.join(" and "))),
        }
    }

    /// Times from the last kill on.
    ///
    /// # Errors
    /// The answer is not the one that is `due`, or the account has a gap: it was another failure than the one that was
    /// ordered.
    pub(super) fn figures(&self, job: &Job, due: &str) -> Result<Figures, String> {
        let answer = self.answer(job)?;
        if answer != due {
            return Err(format!("the answer is {answer} instead of {due}"));
        }
        let everyone = living(job);
        let survivors: Vec<usize> = (0..job.ranks).filter(|rank| !job.victims().contains(rank)).collect();
        if job.task == Task::Agree {
            let of_first = |what| self.last(what, &everyone);
            return Ok(vec![("agree", of_first("agree")?), ("allreduce", of_first("allreduce")?)]);
        }
        let killed = self.last("killed", job.victims())?;
        let since = |what, of: &[usize]| self.last(what, of).map(|time| time - killed);
        let mut figures =
            vec![("known", since("known", &survivors)?), ("shrunk", since("shrunk", &survivors)?)];
        if job.task == Task::Rebuild {
            figures.push(("repaired", since("merged", &everyone)?));
            figures.push(("whole", since("whole", &everyone)?));
        }
        figures.push(("resumed", since("resumed", &everyone)?));
        match figures.iter().find(|(_, seconds)| *seconds <= 0.0) {
            Some((figure, _)) => Err(format!("'{figure}' is before the kill")),
            None => Ok(figures),
        }
    }

    fn who(&self, what: &str) -> Vec<usize> {
        self.0.get(what).map_or_else(Vec::new, |said| said.keys().copied().collect())
    }

    /// Exactly these ranks have said it.
    fn all_of(&self, what: &str, ranks: &[usize]) -> Result<(), String> {
        let who = self.who(what);
        match who == ranks {
            true => Ok(()),
            false => Err(format!("'{what}' is of ranks {who:?} instead of {ranks:?}")),
        }
    }

    /// The latest time of these ranks, which all have to have said one.
    fn last(&self, what: &str, ranks: &[usize]) -> Result<f64, String> {
        self.all_of(what, ranks)?;
        let time = |value: &String| match value.parse::<f64>() {
            Ok(time) if time.is_finite() && time > 0.0 => Ok(time),
            _ => Err(format!("'{what}' has '{value}', which is no time")),
        };
        self.0[what].values().map(time).try_fold(0.0, |last: f64, time| Ok(last.max(time?)))
    }
}

/// Ranks that have something to say at the end.
fn living(job: &Job) -> Vec<usize> {
    let is_gone = |rank: &usize| job.task == Task::Shrink && job.victims().contains(rank);
    (0..job.ranks).filter(|rank| !is_gone(rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::{AGREE, FRESH, SHRINK};
    use super::*;

    /// A rebuild of 8 ranks; rank r was so far r / 1024 s later than rank 0.
    fn rebuilt(victims: &[usize]) -> String {
        let line =
            |what: &str, rank: usize, at: f64| format!("{what},{rank},{}\n", at + rank as f64 / 1024.0);
        let mut text: String = victims.iter().map(|&rank| line("killed", rank, 8.0)).collect();
        for rank in 0..8 {
            if !victims.contains(&rank) {
                text += &line("known", rank, 8.5);
                text += &line("shrunk", rank, 9.0);
            }
            text += &line("merged", rank, 10.0);
            text += &line("whole", rank, 11.0);
            text += &line("resumed", rank, 12.0);
            text += &format!("answer,{rank},00ab\n");
        }
        text
    }

    fn figures(text: &str, job: &Job) -> Result<Figures, String> {
        text.parse::<Marks>()?.figures(job, "00ab")
    }

    #[test]
    fn the_last_rank_counts_from_the_last_kill() {
        let late = |rank: f64| rank / 1024.0;
        let expected = |killed: f64| {
            let since = |seconds: f64| seconds + late(7.0) - late(killed);
            vec![
                ("known", since(0.5)),
                ("shrunk", since(1.0)),
                ("repaired", since(2.0)),
                ("whole", since(3.0)),
                ("resumed", since(4.0)),
            ]
        };
        assert_eq!(figures(&rebuilt(&[2]), &FRESH).unwrap(), expected(2.0));
        let two = Job { lost: 2, ..FRESH };
        assert_eq!(figures(&rebuilt(&[2, 5]), &two).unwrap(), expected(5.0));
    }

    #[test]
    fn another_failure_than_the_ordered_one_does_not_count() {
        let good = rebuilt(&[2]);
        for (from, to, why) in [
            ("answer,3,00ab", "answer,3,00ac", "ranks differ: 00ab and 00ac and 00ab"),
            ("answer,3,00ab\n", "", "'answer' is of ranks [0, 1, 2, 4, 5, 6, 7] instead of"),
            ("00ab", "00ac", "the answer is 00ac instead of 00ab"),
            ("killed,2", "killed,3", "'killed' is of ranks [3] instead of [2]"),
            ("known,4,8.50390625\n", "", "'known' is of ranks [0, 1, 3, 5, 6, 7] instead of"),
            ("killed,2,8.001953125", "killed,2,9", "'known' is before the kill"),
            ("whole,1,11.0009765625", "whole,1,nan", "'whole' has 'nan', which is no time"),
            ("known,4,", "known,4,,", "'known,4,,8.50390625' is no mark"),
            ("merged,1", "merged,0", "'merged' of rank 0 comes twice"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = figures(&good.replace(from, to), &FRESH).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
        assert!(figures(&good, &Job { lost: 2, ..FRESH }).unwrap_err().starts_with("'killed' is of"));
    }

    #[test]
    fn survivors_go_on_alone() {
        let kept = |line: &&str| !line.contains(",2,") || line.starts_with("killed");
        let all = rebuilt(&[2]);
        let text: Vec<&str> =
            all.lines().filter(|line| !line.starts_with("merged") && !line.starts_with("whole")).collect();
        let text = text.into_iter().filter(kept).collect::<Vec<_>>().join("\n");
        let figures = figures(&text, &SHRINK).unwrap();
        let names: Vec<&str> = figures.iter().map(|(figure, _)| *figure).collect();
        assert_eq!(names, ["known", "shrunk", "resumed"]);
        let marks: Marks = text.parse().unwrap();
        assert!(marks.are_complete(&SHRINK) && !marks.are_complete(&FRESH));
    }

    #[test]
    fn calls_have_their_time() {
        let answers: String = (0..8).map(|rank| format!("answer,{rank},00ab\n")).collect();
        let lines =
            |what: &str, at: f64| -> String { (0..8).map(|rank| format!("{what},{rank},{at}\n")).collect() };
        let text = lines("agree", 0.25) + &lines("allreduce", 0.125) + &answers;
        assert_eq!(figures(&text, &AGREE).unwrap(), [("agree", 0.25), ("allreduce", 0.125)]);
    }
}
