(** Wrong variants of the theorem, each refuted; and that the conditions themselves can be met.

    `mutations.py` writes these and other variants into the files, and sees that the lemma named there no longer holds.
    Here is why: each is false. *)

From Coq Require Import Lia Arith.
From Surefoot Require Export Attacks.

(** ** Statements *)

(** The conditions contradict nothing: there is a guard that meets them all. *)
Definition conditions_can_be_met_statement : Prop :=
  exists g : guard,
  world_is_law g /\ coin_unseen g /\ rewards_in_bounds g /\ baseline_below_ceiling g /\ holdout_kept g /\
  bet_fixed_before_coin g /\ bet_never_ruined g /\ no_round_left_out g /\ rounds_paid_at_worst g /\
  promise_declared g /\ delta_split g (4 / 5).

(** A balance after the coin. *)
Definition balance_after_the_coin_statement : Prop :=
  ~ (forall (g : guard) delta,
     world_is_law g -> coin_unseen g -> rewards_in_bounds g -> baseline_below_ceiling g -> holdout_kept g ->
     bet_never_ruined g -> no_round_left_out g -> rounds_paid_at_worst g -> promise_declared g -> delta_split g delta ->
     forall n, prob_within (chance g) n (broken g) [] <= delta).

(** A bet without its cost: of the centred bet the factor exp(l d') is left out. *)
Definition bet_without_its_cost_statement : Prop :=
  exists (m : metric bool) (D : law (round bool)) p l a b,
  is_law D /\ coin_is D p /\ (forall o, low m <= reward m o <= 1) /\ 0 <= p < 1 /\ 0 < l /\
  mean D (fun r => reward m (baseline r)) <= most m /\ never_ruined m l p (Centred a b) /\
  exp (l * slack_of m p (mean D (fun r => reward m (learner r))) (mean D (fun r => reward m (baseline r))))
  < mean D (fun r => 1 + coefficient m l p (coin r) * (reward m (played r) - if coin r then a else b)).

(** A gate that forgets the reserve: the bank spends it, and the promise does not count it. *)
Definition gate_forgets_the_reserve_statement : Prop :=
  exists g : guard,
  world_is_law g /\ coin_unseen g /\ rewards_in_bounds g /\ baseline_below_ceiling g /\ holdout_kept g /\
  bet_fixed_before_coin g /\ bet_never_ruined g /\ no_round_left_out g /\ rounds_paid_at_worst g /\
  promise_declared g /\ delta_split g (4 / 5) /\
  prob_within (chance g) 1 (fun h => existsb (fun m => Rltb (slack g m h) 0) (metrics g)) [] = 1.

(** Delta that is not split: two bets, each wrong with probability delta, and never both right. *)
Definition delta_not_split_statement : Prop :=
  exists (chance : list bool -> law bool) rates (factor factor' : R -> list bool -> bool -> R) delta,
  (forall h, is_law (chance h)) /\ rates_ok rates /\ 0 < delta < 1 /\
  factors_fair chance rates factor /\ factors_fair chance rates factor' /\
  prob_within chance 1 (fun h => refuted rates factor delta h || refuted rates factor' delta h)%bool [] = 1.

(** A missing reward that is counted as 0, in a round in which the actions differ: that may be more than the bet. *)
Definition missing_counted_as_zero_statement : Prop :=
  exists (m : metric bool) l p B U y,
  0 <= low m <= most m /\ most m <= 1 /\ 0 <= alpha m /\ low m <= y <= 1 /\ 0 < p < 1 /\ 0 < l /\
  never_ruined m l p B /\ factor m l p B U y < factor m l p B U 0.

(** ** Proofs *)

Definition steady_bets (m : metric bool) (l : R) (now : list (round bool)) (i : nat) : bet :=
  match i with 0%nat | 1%nat => Centred 1 (-1) | _ => AtWorst end.

Definition steady : guard := attack 2 (4 / 5) 0 (fun _ => 1 / 4) steady_bets (fun _ => false).

Theorem conditions_can_be_met : conditions_can_be_met_statement.
Proof.
  exists steady.
  assert (Hs : forall h : list (round bool), 0 <= 1 / 4 <= 3 / 5) by (intro; lra).
  assert (Hw : world_is_law steady) by (apply attack_world; exact Hs).
  assert (Hc : coin_unseen steady) by apply attack_coin.
  assert (Hr : rewards_in_bounds steady) by apply attack_bounds.
  assert (Hb : baseline_below_ceiling steady) by (apply attack_ceiling; exact Hs).
  assert (Hh : holdout_kept steady) by (apply attack_holdout; exact Hs).
  assert (Hd : promise_declared steady) by (apply attack_declared; lra).
  assert (Hf : bet_fixed_before_coin steady) by (intros m l _ newer h; reflexivity).
  assert (He : no_round_left_out steady) by (apply attack_entered; reflexivity).
  assert (Hsplit : delta_split steady (4 / 5)) by (unfold delta_split; simpl; lra).
  assert (Hn : bet_never_ruined steady).
  { intros m w l h [<-|[]] [[= <- <-]|[]].
    assert (Hslope : 1 * ((1 / 2 - 1 * (1 / 4)) / (1 - 1 / 4)) = 1 / 3) by field.
    destruct h as [|r [|r' h]]; simpl; try exact I; unfold coefficient; simpl; intros U y Hy; rewrite Hslope;
      destruct U; lra. }
  assert (Hp : rounds_paid_at_worst steady).
  { intros m h [<-|[]]. induction h as [|r h [a Ha]]; [eexists; apply opens|].
    apply (attack_goes_on 2 (4 / 5) 0 (fun _ => 1 / 4) steady_bets (fun _ => false) Hs r h a Ha). lra. }
  tauto.
Qed.

Theorem balance_after_the_coin : balance_after_the_coin_statement.
Proof.
  intro H. destruct balance_at_the_merge as (g & Hw & Hc & Hr & Hb & Hh & _ & Hn & He & Hp & Hd & Hsplit & Hall).
  specialize (H g (9 / 10) Hw Hc Hr Hb Hh Hn He Hp Hd Hsplit 2%nat). lra.
Qed.

Theorem bet_without_its_cost : bet_without_its_cost_statement.
Proof.
  exists (half_of_the_baseline 1 0), (barren 1 (fun _ => 1 / 4) []), (1 / 4), 1, 0, (-3).
  assert (Hcoin : coin_is (barren 1 (fun _ => 1 / 4) []) (1 / 4)) by (intro f; simpl; ring).
  assert (Hlaw : is_law (barren 1 (fun _ => 1 / 4) [])).
  { split; simpl; [|lra]. apply Forall_cons; [|apply Forall_cons; [|apply Forall_nil]]; simpl; lra. }
  assert (Hslope : 1 * ((1 / 2 - 1 * (1 / 4)) / (1 - 1 / 4)) = 1 / 3) by field.
  repeat split; try assumption; try apply Hlaw; try (destruct o); simpl; try lra.
  - intros U y Hy. unfold coefficient. simpl. rewrite Hslope. destruct U; lra.
  - unfold slack_of, coefficient. simpl. rewrite Hslope.
    replace (1 * (1 * (1 / 4) * (1 / 4 * 0 + ((1 - 1 / 4) * 0 + 0))
                  + (1 / 2 - 1 * (1 / 4)) * (1 / 4 * 0 + ((1 - 1 / 4) * 0 + 0))))
      with 0 by ring. rewrite exp_0. lra.
Qed.

Definition spending : guard :=
  attack 0 (4 / 5) (1 / 10) (fun h => match h with [] => 3 / 5 | _ => 0 end) (fun _ _ _ _ => AtWorst) (fun _ => false).

Theorem gate_forgets_the_reserve : gate_forgets_the_reserve_statement.
Proof.
  exists spending.
  assert (Hs : forall h : list (round bool), 0 <= match h with [] => 3 / 5 | _ => 0 end <= 3 / 5) by (intros []; lra).
  assert (Hw : world_is_law spending) by (apply attack_world; exact Hs).
  assert (Hc : coin_unseen spending) by apply attack_coin.
  assert (Hr : rewards_in_bounds spending) by apply attack_bounds.
  assert (Hb : baseline_below_ceiling spending) by (apply attack_ceiling; exact Hs).
  assert (Hh : holdout_kept spending) by (apply attack_holdout; exact Hs).
  assert (Hd : promise_declared spending) by (apply attack_declared; lra).
  assert (Hf : bet_fixed_before_coin spending) by (intros m l _ newer h; reflexivity).
  assert (He : no_round_left_out spending) by (apply attack_entered; reflexivity).
  assert (Hsplit : delta_split spending (4 / 5)) by (unfold delta_split; simpl; lra).
  assert (Hn : bet_never_ruined spending) by (intros m w l h _ _; exact I).
  assert (Hp : rounds_paid_at_worst spending).
  { apply (attack_paid 0 (4 / 5) (1 / 10) _ (fun _ _ _ _ => AtWorst) (fun _ => false) Hs).
    - intros [|r [|]] H; simpl in H; try lia; [eexists; apply opens|].
      apply (attack_pays 0 (4 / 5) (1 / 10) _ (fun _ _ _ _ => AtWorst) (fun _ => false) Hs r [] _ (opens _ _)); simpl;
        lra.
    - intros [|r h] H; simpl in H; [lia | reflexivity]. }
  assert (H0 : Rltb (slack spending (half_of_the_baseline (4 / 5) (1 / 10)) []) 0 = false)
    by (apply Rltb_false; simpl; lra).
  assert (H1 : forall r : round bool, Rltb (slack spending (half_of_the_baseline (4 / 5) (1 / 10)) [r]) 0 = true).
  { intro r. apply Rltb_true. simpl. unfold spending. rewrite attack_slack. simpl. lra. }
  assert (Hall : prob_within (chance spending) 1
    (fun h => existsb (fun m => Rltb (slack spending m h) 0) (metrics spending)) [] = 1).
  { unfold spending in *. rewrite attack_step, !attack_end.
    cbn [metrics attack existsb]. rewrite H0, !H1. simpl. lra. }
  tauto.
Qed.

Theorem delta_not_split : delta_not_split_statement.
Proof.
  exists (fun _ => [(1 / 2, true); (1 / 2, false)]), [(1, 1)],
    (fun _ _ (heads : bool) => if heads then 2 else 0), (fun _ _ (heads : bool) => if heads then 0 else 2), (1 / 2).
  assert (Hlaw : forall h : list bool, is_law [(1 / 2, true); (1 / 2, false)])
    by (intros _; split; simpl; [repeat constructor; simpl; lra | lra]).
  assert (H2 : / (1 / 2) = 2) by field.
  repeat split; try apply Hlaw; try exact []; simpl; try lra; try (repeat constructor; simpl; lra).
  - intros []; lra.
  - intros []; lra.
  - unfold refuted, mixture. simpl. rewrite H2.
    repeat (first [rewrite (Rleb_false 2) by lra | rewrite (proj2 (Rleb_true 2 _)) by lra]; simpl). lra.
Qed.

Theorem missing_counted_as_zero : missing_counted_as_zero_statement.
Proof.
  exists (half_of_the_baseline 1 0), 1, (3 / 5), (Centred 0 0), false, 1.
  assert (Hslope : 1 * ((1 / 2 - 1 * (3 / 5)) / (1 - 3 / 5)) = - (1 / 4)) by field.
  repeat split; simpl; try lra.
  - intros U y Hy. unfold coefficient. simpl. rewrite Hslope. destruct U; lra.
  - unfold coefficient. simpl. rewrite Hslope. apply Rmult_lt_compat_l; [apply exp_pos | lra].
Qed.
