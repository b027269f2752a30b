(** All that is proved, in one place: the statements, and the axioms that they rest on. *)

From Surefoot Require Import Played Wrong Checker Exponential Certificate.

Check order_of_learning : order_of_learning_statement.
Check fair_bet : fair_bet_statement.
Check certificate_is_true : certificate_is_true_statement.
Check books_keep_the_floor : books_keep_the_floor_statement.
Check promise_kept : promise_kept_statement.
Check played_promise_kept : played_promise_kept_statement.
Check conditions_can_be_met : conditions_can_be_met_statement.
Check balance_at_the_merge : balance_at_the_merge_statement.
Check bad_news_left_out : bad_news_left_out_statement.
Check learning_from_a_selection : learning_from_a_selection_statement.
Check accepted_proofs_are_true : accepted_proofs_are_true_statement.
Check accepted_banks_are_true : accepted_banks_are_true_statement.

(** The promise, and what it rests on. *)
Print promise_kept_statement.

Definition everything :=
  (order_of_learning, fair_bet, certificate_is_true, books_keep_the_floor, promise_kept, played_promise_kept,
   (conditions_can_be_met, balance_at_the_merge, bad_news_left_out, learning_from_a_selection, balance_after_the_coin,
    bet_without_its_cost, gate_forgets_the_reserve, delta_not_split, missing_counted_as_zero),
   (accepted_proofs_are_true, the_question_asked, exp_below_is_below, accepted_banks_are_true)).
Print Assumptions everything.
