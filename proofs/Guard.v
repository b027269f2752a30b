(** The guard, and the conditions of its promise, each by the name that it has in docs/guarantee.md.

    A history holds everything that was drawn: every coin, and what both actions would have brought, whether or not it
    has been seen. The world is an adversary that knows all of it, and so everything but the coins still to come: it
    chooses the laws of the rewards, who decides next, which rewards come when, which are lost, and when servers hand
    in. All of these are functions of the history, with no condition on them but those listed here. *)

From Surefoot Require Export Bets.

Record guard := Guard {
  Outcome : Type;
  (** the world: the law of the next round *)
  chance : list (round Outcome) -> law (round Outcome);
  (** what is promised *)
  metrics : list (metric Outcome);
  (** the probability with which the next round plays the proposal *)
  share : list (round Outcome) -> R;
  (** the bet of a metric and a rate, as computed now, on the round of a number *)
  bets : metric Outcome -> R -> list (round Outcome) -> nat -> bet;
  (** what has entered for that round, as computed now *)
  entries : metric Outcome -> R -> list (round Outcome) -> nat -> R;
  (** servers that hold a part of the bank *)
  servers : nat
}.

Section Guard.
  Variable g : guard.
  Notation history := (list (round (Outcome g))).
  Implicit Types (m : metric (Outcome g)) (h now : history).

  (** What the world draws has probabilities. *)
  Definition world_is_law : Prop := forall h, is_law (chance g h).

  (** The coin has the probability that was said, given everything that happened before: also given rewards that have
      not come yet, so none of them depends on it. And nobody knows it when the rewards of both actions are settled. *)
  Definition coin_unseen : Prop := forall h, coin_is (chance g h) (share g h).

  (** Rewards, divided by their upper bound, lie in [low, 1]. *)
  Definition rewards_in_bounds : Prop := forall m o, In m (metrics g) -> low m <= reward m o <= 1.

  (** The baseline's mean is at most what was declared, given everything before: context and prediction, too. *)
  Definition baseline_below_ceiling : Prop :=
    forall m h, In m (metrics g) -> mean (chance g h) (fun r => reward m (baseline r)) <= most m.

  (** The baseline keeps a part of the rounds. *)
  Definition holdout_kept : Prop := exists eps, 0 < eps /\ forall h, 0 <= share g h <= 1 - eps.

  (** What enters a bet is a function of what was known before the coin of its round: in one process, of what had
      entered when it was decided; in a lease, of the lease's frozen bank. Computed later, it is still the same. *)
  Definition bet_fixed_before_coin : Prop := forall m l, In m (metrics g) -> fixed_before (bets g m l).

  (** No factor is negative, whatever the coin and the reward; a bet that could be is booked at its worst. *)
  Definition bet_never_ruined : Prop :=
    forall m w l h, In m (metrics g) -> In (w, l) (rates m) -> never_ruined m l (share g h) (bets g m l h (length h)).

  (** Of the rounds that have entered none is left out. A missing reward counts at the least factor of the side that was
      played; an agreeing round may be late. Which rewards are missing or late, the world decides as it likes. *)
  Definition no_round_left_out : Prop :=
    forall m w l now r h, In m (metrics g) -> In (w, l) (rates m) -> decision_order now (r :: h) ->
    entry_of m l (share g h) (bets g m l now (length h)) (coin r) (reward m (played r))
      (entries g m l now (length h)).

  (** The numbers of the promise make sense. *)
  Definition promise_declared : Prop :=
    forall m, In m (metrics g) ->
    0 <= low m <= most m /\ most m <= 1 /\ 0 <= alpha m /\ 0 <= reserve m /\ 0 < delta m /\ rates_ok (rates m).

  (** Several metrics share delta. *)
  Definition delta_split (total : R) : Prop := fold_right (fun m sum => delta m + sum) 0 (metrics g) <= total.

  (** ** What is promised: the slack of all rounds, and whether it fell below what was granted *)

  Definition mean_learner m h : R := mean (chance g h) (fun r => reward m (learner r)).
  Definition mean_baseline m h : R := mean (chance g h) (fun r => reward m (baseline r)).
  Definition next_slack m h : R := slack_of m (share g h) (mean_learner m h) (mean_baseline m h).
  Definition next_worst m h : R := worst_of m (share g h).

  Fixpoint slack m h : R :=
    match h with
    | [] => 0
    | _ :: past => slack m past + next_slack m past
    end.

  Definition broken h : bool := existsb (fun m => Rltb (slack m h) (- reserve m)) (metrics g).
End Guard.

(** ** Units: where one reward belongs to several visits, the unit is the round. Its coin is drawn once and kept; its
    reward is the sum over its visits, cut at the upper bound. So rewards are in bounds, and nothing else changes. *)

Definition unit_reward (visits : list R) : R := Rmin 1 (fold_right Rplus 0 visits).

Lemma unit_reward_in_bounds visits : Forall (Rle 0) visits -> 0 <= unit_reward visits <= 1.
Proof.
  intro H. unfold unit_reward. split; [|apply Rmin_l]. apply Rmin_glb; [lra|].
  induction H as [|y visits Hy H IH]; simpl; lra.
Qed.
