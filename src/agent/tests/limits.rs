//! What ends a turn before the model does: requests, tokens, costs, and calls that repeat.

use super::*;

/// 120 tokens.
fn usage() -> Value {
    json!({ "usage": { "prompt_tokens": 100, "completion_tokens": 20 } })
}

fn a_turn(turn: Allowance) -> Limits {
    Limits {
        turn,
        ..Limits::default()
    }
}

/// Runs rounds of calls until this limit stops the turn; the notice must name it.
async fn stopped_by(limits: Limits, requests: usize, named: &str) {
    let round = |n: u32| {
        json!([
            call_with(&format!("c{n}"), "look", &json!({ "n": n })),
            usage()
        ])
    };
    let mut play = Play::free((0..9).map(round).collect(), limits);
    assert_eq!(play.end().await, Termination::MaxTurnRequests, "{named}");
    assert_eq!(
        play.server.rehearsal().requests().len(),
        requests,
        "{named}"
    );
    assert!(
        play.notices.iter().any(|notice| notice.contains(named)),
        "{:?}",
        play.notices
    );
    assert_eq!(
        play.ends.len(),
        requests,
        "the calls of the last answer have their results"
    );
}

#[tokio::test]
async fn limits_end_a_turn_between_requests() {
    let any = Allowance::default();
    stopped_by(
        a_turn(Allowance {
            iterations: Some(3),
            ..any
        }),
        3,
        "limits.iterations",
    )
    .await;
    stopped_by(
        a_turn(Allowance {
            tokens: Some(240),
            ..any
        }),
        2,
        "240 tokens (limits.tokens)",
    )
    .await;
    let session = Limits {
        session: Allowance {
            iterations: Some(3),
            ..any
        },
        ..Limits::default()
    };
    stopped_by(
        session,
        3,
        "3 requests to the model in this session (limits.session-iterations)",
    )
    .await;
}

#[tokio::test]
async fn costs_add_up_to_the_limit() {
    let usage = json!({ "usage": { "prompt_tokens": 10, "completion_tokens": 1, "cost": 0.5 } });
    let round = |n: u32| {
        json!([
            call_with(&format!("c{n}"), "look", &json!({ "n": n })),
            usage
        ])
    };
    let limits = a_turn(Allowance {
        cost: Some(1.5),
        ..Allowance::default()
    });
    let mut play = Play::free((0..9).map(round).collect(), limits);
    assert_eq!(play.end().await, Termination::MaxTurnRequests);
    assert_eq!(play.server.rehearsal().requests().len(), 3);
    assert_eq!(
        play.notices,
        ["stopped after 1.50 US dollars (limits.cost); send \"continue\" to go on"]
    );
}

#[tokio::test]
async fn a_cost_limit_without_known_prices_is_reported() {
    let limits = a_turn(Allowance {
        cost: Some(1.0),
        ..Allowance::default()
    });
    let mut play = Play::free(json!([[call("a", "look")], [{ "text": "done" }]]), limits);
    assert_eq!(play.end().await, Termination::EndTurn);
    assert!(
        play.notices[0].starts_with("limits.cost cannot be enforced"),
        "{:?}",
        play.notices
    );
    assert_eq!(play.notices.len(), 1, "reported once per turn");
}

fn repeats(rounds: u32) -> Value {
    (0..rounds)
        .map(|n| json!([call_with(&format!("c{n}"), "look", &json!({ "n": 1 }))]))
        .collect()
}

#[tokio::test]
async fn a_looping_turn_continues_only_if_the_user_agrees() {
    let mut play = Play::free(repeats(20), Limits::default());
    play.yeses = 2;
    assert_eq!(play.end().await, Termination::MaxTurnRequests);
    let loops = play.log.iter().filter(|line| *line == "loop 4").count();
    assert_eq!(
        (play.server.rehearsal().requests().len(), loops),
        (12, 3),
        "counted anew after each yes: {:?}",
        play.log
    );
    let asked = "Continue? The turn paused because the model made the same call with the same result 4 times in a row";
    assert_eq!(play.pauses, [asked; 3]);
}

#[tokio::test]
async fn a_limit_restarts_after_the_user_continues() {
    let round = |n: u32| {
        json!([
            call_with(&format!("c{n}"), "look", &json!({ "n": n })),
            usage()
        ])
    };
    let limits = a_turn(Allowance {
        tokens: Some(240),
        ..Allowance::default()
    });
    let mut play = Play::free((0..9).map(round).collect(), limits);
    play.yeses = 1;
    assert_eq!(play.end().await, Termination::MaxTurnRequests);
    assert_eq!(play.server.rehearsal().requests().len(), 4);
    assert_eq!(
        play.pauses,
        ["Continue? The turn paused after 240 tokens (limits.tokens)"; 2]
    );
}

#[tokio::test]
async fn cancelling_a_turn_cancels_its_permission_request() {
    let mut play = Play::free(repeats(9), Limits::default());
    play.cancel_at_pause = true;
    assert_eq!(play.end().await, Termination::Cancelled);
    assert_eq!(play.server.rehearsal().requests().len(), 4);
}
