(** Attacks: what breaks when one condition is missing.

    Each was tried on the running library, and each is refuted here: all other conditions hold, and the promise is
    broken more often than delta. So no condition below can be spared. *)

From Coq Require Import Lia Arith.
From Surefoot Require Export Promise.

(** ** Statements *)

(** A leased balance that is taken at the merge: the bet is read off after the coin, from two that would each have been
    fair. The promise is broken in every run. *)
Definition balance_at_the_merge_statement : Prop :=
  exists g : guard,
  world_is_law g /\ coin_unseen g /\ rewards_in_bounds g /\ baseline_below_ceiling g /\ holdout_kept g /\
  ~ bet_fixed_before_coin g /\ bet_never_ruined g /\ no_round_left_out g /\ rounds_paid_at_worst g /\
  promise_declared g /\ delta_split g (9 / 10) /\
  prob_within (chance g) 2 (broken g) [] = 1.

(** Rounds without a reward that are left out: bad news is lost. *)
Definition bad_news_left_out_statement : Prop :=
  exists g : guard,
  world_is_law g /\ coin_unseen g /\ rewards_in_bounds g /\ baseline_below_ceiling g /\ holdout_kept g /\
  bet_fixed_before_coin g /\ bet_never_ruined g /\
  ~ no_round_left_out g /\ rounds_paid_at_worst g /\ promise_declared g /\ delta_split g (4 / 5) /\
  prob_within (chance g) 3 (broken g) [] = 15 / 16.

(** A model that leaves out rounds without a reward, and a void by later rewards: whether a round counts is not fixed
    before it. [counts] looks at the round's own reward, or only at a later one that may depend on it. *)
Definition own_reward (now : list bool) (i : nat) : bool :=
  match round_at i now with Some good => good | None => true end.
Definition later_reward (now : list bool) (i : nat) : bool :=
  if Nat.even i then own_reward now (S i) else true.

Definition learning_from_a_selection_statement : Prop :=
  forall counts, counts = own_reward \/ counts = later_reward ->
  exists (chance : list bool -> law bool) factor,
  (forall h, is_law (chance h)) /\ factors_fair chance [(1, 1)] factor /\
  ~ fixed_before counts /\ prob_within chance 3 (some_prefix_refuted [(1, 1)] factor counts (1 / 4)) [] = 7 / 16.

(** ** Proofs *)

Lemma Rleb_false x y : y < x -> Rleb x y = false.
Proof. intro H. unfold Rleb. destruct (Rle_dec x y); [lra | reflexivity]. Qed.
Lemma Rltb_false x y : y <= x -> Rltb x y = false.
Proof. intro H. unfold Rltb. destruct (Rlt_dec x y); [lra | reflexivity]. Qed.

(** *** Bets and entries

    Both guards promise a floor at half of the baseline's reward, with one rate. At first nothing is earned by either
    side, so there is no slack; then the share is raised to what the bank seems to allow, while the baseline earns 1 and
    the learner nothing. *)

Definition half_of_the_baseline (delta reserve : R) : metric bool :=
  Metric bool (fun earned => if earned then 1 else 0) 1 (1 / 2) 0 1 reserve delta [(1, 1)].

Definition barren (first : nat) (share : list (round bool) -> R) (h : list (round bool)) : law (round bool) :=
  let later := Nat.leb first (length h) in
  [(share h, Round bool true false later); (1 - share h, Round bool false false later)].

(** Each round enters with its own reward, unless [lost] says otherwise. *)
Definition entered (lost : round bool -> bool) share (bets : metric bool -> R -> list (round bool) -> nat -> bet)
  (m : metric bool) (l : R) (now : list (round bool)) (i : nat) : R :=
  match oldest (S i) now with
  | r :: h => if lost r then 1 else factor m l (share h) (bets m l now i) (coin r) (reward m (played r))
  | [] => 1
  end.

Definition attack first delta reserve share bets lost : guard :=
  Guard bool (barren first share) [half_of_the_baseline delta reserve] share bets (entered lost share bets) 0.

Lemma oldest_round {Round} newer (r : Round) h : oldest (S (length h)) (newer ++ r :: h) = r :: h.
Proof. apply (oldest_prefix newer (r :: h)). Qed.

Section Attack.
  Variables (first : nat) (delta reserve : R) (share : list (round bool) -> R).
  Variable bets : metric bool -> R -> list (round bool) -> nat -> bet.
  Variable lost : round bool -> bool.
  Hypothesis delta_ok : 0 < delta.
  Hypothesis reserve_ok : 0 <= reserve.
  Hypothesis share_ok : forall h, 0 <= share h <= 3 / 5.
  Let g := attack first delta reserve share bets lost.
  Let m := half_of_the_baseline delta reserve.

  Lemma attack_world : world_is_law g.
  Proof. intro h. specialize (share_ok h). split; simpl; [|ring].
    apply Forall_cons; [|apply Forall_cons; [|apply Forall_nil]]; simpl; lra. Qed.

  Lemma attack_coin : coin_unseen g.
  Proof. intros h f. simpl. ring. Qed.

  Lemma attack_bounds : rewards_in_bounds g.
  Proof. intros m' o [<-|[]]. simpl. destruct o; lra. Qed.

  Lemma attack_ceiling : baseline_below_ceiling g.
  Proof.
    intros m' h [<-|[]]. simpl. specialize (share_ok h). 
    match goal with |- context [Nat.leb first ?n] => destruct (Nat.leb first n) end; lra.
  Qed.

  Lemma attack_holdout : holdout_kept g.
  Proof. exists (2 / 5). split; [lra|]. intro h. simpl. specialize (share_ok h). lra. Qed.

  Lemma attack_declared : promise_declared g.
  Proof.
    intros m' [<-|[]]. simpl. repeat split; simpl; try lra. apply Forall_cons; [simpl; lra | apply Forall_nil].
  Qed.

  Lemma attack_entered : (forall r, lost r = false) -> no_round_left_out g.
  Proof.
    intros Hlost m' w l now r h Hm Hl [newer ->]. simpl. unfold entered. rewrite oldest_round, Hlost. constructor.
  Qed.

  (** Up to one half a share is free; beyond that it costs the difference. *)
  Lemma attack_cost p : 0 <= p -> worst_of m p <= Rmax 0 (p - 1 / 2).
  Proof.
    intro Hp. unfold worst_of, m, half_of_the_baseline. simpl.
    rewrite !Rmult_0_r, !Rmult_1_r, !Rmult_1_l. unfold Rmin, Rmax.
    destruct (Rle_dec 0 p), (Rle_dec 0 (1 / 2 - p)), (Rle_dec 0 (p - 1 / 2));
      repeat match goal with |- context [Rle_dec ?x ?y] => destruct (Rle_dec x y) end; lra.
  Qed.

  Lemma attack_free p : 0 <= p <= 1 / 2 -> worst_of m p = 0.
  Proof.
    intro Hp. pose proof (attack_cost p). rewrite Rmax_left in H by lra. pose proof (worst_nonneg m p). lra.
  Qed.

  (** A round that costs nothing can always be decided, and one that the bank pays for. *)
  Lemma attack_goes_on r h a : books g m h a -> share h <= 1 / 2 -> exists a', books g m (r :: h) a'.
  Proof.
    intros Ha Hp. eexists. eapply decides; [exact Ha|]. left. apply attack_free. specialize (share_ok h). simpl. lra.
  Qed.

  Lemma attack_pays r h a : books g m h a -> share h - 1 / 2 <= held a -> 0 <= held a ->
    exists a', books g m (r :: h) a'.
  Proof.
    intros Ha Hp H0. eexists. eapply decides; [exact Ha|]. right. unfold leased. simpl. rewrite Rminus_0_r.
    specialize (share_ok h). eapply Rle_trans; [apply attack_cost; simpl; lra|].
    apply Rmax_lub; assumption.
  Qed.

  (** If the books can be kept for the first rounds, and then nothing is at stake, they can be kept for ever. *)
  Lemma attack_paid : (forall h, (length h <= S first)%nat -> exists a, books g m h a) ->
    (forall h, (first < length h)%nat -> share h = 0) -> rounds_paid_at_worst g.
  Proof.
    intros Hfirst Hlater m' h [<-|[]]. fold m. induction h as [|r h [a Ha]]; [apply Hfirst; apply Nat.le_0_l|].
    destruct (le_lt_dec (length h) first) as [H|H].
    - apply Hfirst. exact (le_n_S _ _ H).
    - apply (attack_goes_on r h a Ha). rewrite (Hlater h H). lra.
  Qed.

  Lemma attack_step n A (h : list (round bool)) :
    prob_within (chance g) (S n) A h
    = if A h then 1
      else share h * prob_within (chance g) n A (Round bool true false (Nat.leb first (length h)) :: h)
           + (1 - share h) * prob_within (chance g) n A (Round bool false false (Nat.leb first (length h)) :: h).
  Proof. simpl. destruct (A h); [reflexivity | ring]. Qed.

  Lemma attack_end A (h : list (round bool)) : prob_within (chance g) 0 A h = if A h then 1 else 0.
  Proof. reflexivity. Qed.

  Lemma attack_broken (h : list (round bool)) : broken g h = Rltb (slack g m h) (- reserve).
  Proof. unfold broken. simpl. apply Bool.orb_false_r. Qed.

  Lemma attack_slack (h : list (round bool)) :
    next_slack g m h = (1 / 2 - share h) * if Nat.leb first (length h) then 1 else 0.
  Proof.
    unfold next_slack, slack_of, mean_learner, mean_baseline. simpl. ring.
  Qed.
End Attack.
(** The balance at the merge: one round, then the bank is spent. *)

Definition merge_share (h : list (round bool)) : R :=
  match length h with 0%nat => 1 / 4 | 1%nat => 3 / 5 | _ => 0 end.

(** Which of two bets it was is read off the coin. *)
Definition merge_bets (m : metric bool) (l : R) (now : list (round bool)) (i : nat) : bet :=
  match i with
  | 0%nat => match round_at 0 now with
             | Some r => if coin r then Centred 0 3 else Centred 1 0
             | None => Centred 0 0
             end
  | 1%nat => AtWorst
  | _ => Agreeing
  end.

Definition merge_attack : guard := attack 1 (9 / 10) 0 merge_share merge_bets (fun _ => false).

Lemma merge_share_ok h : 0 <= merge_share h <= 3 / 5.
Proof. unfold merge_share. destruct (length h) as [|[|]]; lra. Qed.

Lemma exp_at_least x c : c <= 1 + x -> c <= exp x.
Proof. intro H. eapply Rle_trans; [exact H | apply exp_above_tangent]. Qed.

(** Whatever the coin, the first round seems to prove a slack of 1/10. *)
Lemma merge_certifies (r : round bool) : certified merge_attack (half_of_the_baseline (9 / 10) 0) [r] [r] (1 / 10).
Proof.
  unfold certified. simpl. unfold entered, merge_bets, round_at, oldest. simpl.
  replace (/ (9 / 10)) with (10 / 9) by field.
  assert (Hslope : 1 * ((1 / 2 - 1 * (1 / 4)) / (1 - 1 / 4)) = 1 / 3) by field.
  assert (Hone : forall x z, 10 / 9 <= exp (x - 1 / 10) -> 0 <= z ->
    10 / 9 <= 1 * (1 * (exp x * (1 + z)) * exp (- (1 * (1 / 10)))) + 0).
  { intros x z Hx Hz. replace (x - 1 / 10) with (x + - (1 * (1 / 10))) in Hx by lra. rewrite exp_plus in Hx.
    replace (1 * (1 * (exp x * (1 + z)) * exp (- (1 * (1 / 10)))) + 0)
      with (exp x * exp (- (1 * (1 / 10))) * (1 + z)) by ring.
    rewrite <- (Rmult_1_r (10 / 9)). apply Rmult_le_compat; lra. }
  unfold merge_share. simpl. unfold coefficient. simpl. rewrite ?Hslope.
  destruct (coin r); simpl; (apply Hone; [apply exp_at_least; unfold slack_of; simpl; lra|]); destruct (played r); lra.
Qed.

Lemma merge_paid : rounds_paid_at_worst merge_attack.
Proof.
  apply attack_paid; [exact merge_share_ok | |
    intros h H; unfold merge_share; destruct (length h) as [|[|]]; [lia | lia | reflexivity]].
  assert (H1 : forall r : round bool,
    exists a, books merge_attack (half_of_the_baseline (9 / 10) 0) [r] a /\ 1 / 10 <= held a).
  { intro r. eexists. split.
    - eapply (proves merge_attack _ [r] _ [r] [] [None] (1 / 10)).
      + apply (decides merge_attack _ r [] _ (opens _ _)). left. apply attack_free. simpl. unfold merge_share. simpl.
        lra.
      + exists []. reflexivity.
      + reflexivity.
      + reflexivity.
      + repeat constructor.
      + apply merge_certifies.
    - simpl. eapply Rle_trans; [|apply Rmax_r]. lra. }
  intros [|r1 [|r0 [|]]] Hlength; simpl in Hlength; try lia.
  - eexists. apply opens.
  - destruct (H1 r1) as [a [Ha _]]. exists a. exact Ha.
  - destruct (H1 r0) as [a [Ha Hheld]].
    apply (attack_pays 1 (9 / 10) 0 merge_share merge_bets (fun _ => false) merge_share_ok r1 [r0] a Ha);
      [unfold merge_share; simpl; lra | lra].
Qed.

Lemma merge_ruin : bet_never_ruined merge_attack.
Proof.
  intros m w l h [<-|[]] [[= <- <-]|[]]. destruct h as [|r [|r' h]]; simpl; try exact I; [|reflexivity].
  unfold merge_share. simpl. intros U y Hy.
  assert (Hslope : 1 * ((1 / 2 - 1 * (1 / 4)) / (1 - 1 / 4)) = 1 / 3) by field.
  unfold coefficient. simpl. rewrite Hslope. destruct U; lra.
Qed.

Lemma merge_breaks : prob_within (chance merge_attack) 2 (broken merge_attack) [] = 1.
Proof.
  assert (H0 : broken merge_attack [] = false).
  { unfold merge_attack. rewrite attack_broken. apply Rltb_false. simpl. lra. }
  assert (H1 : forall r : round bool, broken merge_attack [r] = false).
  { intro r. unfold merge_attack. rewrite attack_broken. apply Rltb_false. simpl. rewrite attack_slack. simpl. lra. }
  assert (H2 : forall r r' : round bool, broken merge_attack [r'; r] = true).
  { intros r r'. unfold merge_attack. rewrite attack_broken. apply Rltb_true. simpl. rewrite !attack_slack. simpl.
    unfold merge_share. simpl. lra. }
  unfold merge_attack in *. rewrite !attack_step, !attack_end, H0, !H1, !H2. simpl. lra.
Qed.

Theorem balance_at_the_merge : balance_at_the_merge_statement.
Proof.
  exists merge_attack. pose proof merge_share_ok as Hs.
  assert (Hw : world_is_law merge_attack) by (apply attack_world; exact Hs).
  assert (Hc : coin_unseen merge_attack) by apply attack_coin.
  assert (Hr : rewards_in_bounds merge_attack) by apply attack_bounds.
  assert (Hb : baseline_below_ceiling merge_attack) by (apply attack_ceiling; exact Hs).
  assert (Hh : holdout_kept merge_attack) by (apply attack_holdout; exact Hs).
  assert (He : no_round_left_out merge_attack) by (apply attack_entered; reflexivity).
  assert (Hd : promise_declared merge_attack) by (apply attack_declared; lra).
  assert (Hsplit : delta_split merge_attack (9 / 10)) by (unfold delta_split; simpl; lra).
  pose proof merge_ruin as Hn. pose proof merge_paid as Hp. pose proof merge_breaks as H1.
  assert (Hnot : ~ bet_fixed_before_coin merge_attack).
  { intro Hfixed. pose proof (promise_kept merge_attack (9 / 10) Hw Hc Hr Hb Hh Hfixed Hn He Hp Hd Hsplit 2%nat). lra. }
  tauto.
Qed.

(** Bad news left out: two rounds, of which those that played the learner are lost; then the bank is spent. *)

Definition lossy_share (h : list (round bool)) : R :=
  match h with
  | [] | [_] => 1 / 4
  | [r; r'] => if (coin r && coin r')%bool then 0 else 11 / 20
  | _ => 0
  end.

Definition lossy_bets (m : metric bool) (l : R) (now : list (round bool)) (i : nat) : bet :=
  match i with 0%nat | 1%nat => Centred 1 (-1) | _ => AtWorst end.

Definition lossy_attack : guard := attack 2 (4 / 5) 0 lossy_share lossy_bets coin.

Lemma lossy_share_ok h : 0 <= lossy_share h <= 3 / 5.
Proof. unfold lossy_share. destruct h as [|r [|r' [|]]]; try lra. destruct (coin r && coin r')%bool; lra. Qed.

Lemma lossy_ruin : bet_never_ruined lossy_attack.
Proof.
  intros m w l h [<-|[]] [[= <- <-]|[]].
  assert (Hslope : 1 * ((1 / 2 - 1 * (1 / 4)) / (1 - 1 / 4)) = 1 / 3) by field.
  destruct h as [|r [|r' h]]; simpl; try exact I; unfold coefficient; simpl; intros U y Hy; rewrite Hslope;
    destruct U; lra.
Qed.

(** What enters: 1 for a round that is lost, at least 4/3 for one that is not. *)
Lemma lossy_entry (now : list (round bool)) i r h :
  oldest (S i) now = r :: h -> (length h = i)%nat -> (i < 2)%nat ->
  (if coin r then 1 else 4 / 3) <= entries lossy_attack (half_of_the_baseline (4 / 5) 0) 1 now i.
Proof.
  intros Hold Hlen Hi. simpl. unfold entered. rewrite Hold. destruct (coin r) eqn:Hcoin; [lra|].
  assert (Hshare : lossy_share h = 1 / 4) by (destruct h as [|? [|? [|]]]; simpl in *; try lia; reflexivity).
  assert (Hbet : lossy_bets (half_of_the_baseline (4 / 5) 0) 1 now i = Centred 1 (-1))
    by (destruct i as [|[|]]; lia || reflexivity).
  rewrite Hbet, Hshare. unfold factor, slack_of, coefficient. simpl.
  replace (1 * (1 * (1 / 4) * 1 + (1 / 2 - 1 * (1 / 4)) * -1)) with 0 by field. rewrite exp_0.
  replace (1 * ((1 / 2 - 1 * (1 / 4)) / (1 - 1 / 4))) with (1 / 3) by field. destruct (played r); lra.
Qed.

Lemma lossy_certifies (r r' : round bool) : (coin r && coin r')%bool = false ->
  certified lossy_attack (half_of_the_baseline (4 / 5) 0) [r; r'] [r; r'] (1 / 20).
Proof.
  intro Hcoins. unfold certified. simpl. replace (/ (4 / 5)) with (5 / 4) by field.
  pose proof (lossy_entry [r; r'] 0 r' [] eq_refl eq_refl (Nat.lt_0_2)) as H0.
  pose proof (lossy_entry [r; r'] 1 r [r'] eq_refl eq_refl (Nat.lt_1_2)) as H1.
  simpl in H0, H1. set (e0 := entered _ _ _ _ _ _ 0) in *. set (e1 := entered _ _ _ _ _ _ 1) in *.
  assert (He : 19 / 20 <= exp (- (1 * (1 / 20)))) by (apply exp_at_least; lra).
  assert (Hw : 4 / 3 <= 1 * e0 * e1).
  { destruct (coin r), (coin r'); try discriminate.
    - replace (4 / 3) with (1 * (4 / 3) * 1) by ring. apply Rmult_le_compat; lra.
    - replace (4 / 3) with (1 * 1 * (4 / 3)) by ring. apply Rmult_le_compat; lra.
    - replace (4 / 3) with (1 * (4 / 3) * 1) by ring. apply Rmult_le_compat; lra. }
  assert (5 / 4 <= (1 * e0 * e1) * exp (- (1 * (1 / 20)))).
  { apply Rle_trans with (4 / 3 * (19 / 20)); [lra|]. apply Rmult_le_compat; lra. }
  lra.
Qed.

Lemma lossy_paid : rounds_paid_at_worst lossy_attack.
Proof.
  assert (Hfree : forall (r : round bool) (h : list (round bool)) a,
    books lossy_attack (half_of_the_baseline (4 / 5) 0) h a -> lossy_share h <= 1 / 2 ->
    exists a', books lossy_attack (half_of_the_baseline (4 / 5) 0) (r :: h) a')
    by (apply attack_goes_on; exact lossy_share_ok).
  apply attack_paid; [exact lossy_share_ok | |
    intros h H; unfold lossy_share; destruct h as [|? [|? [|]]]; simpl in H; try lia; reflexivity].
  intros h Hlength. change (list (round bool)) in (type of h).
  destruct h as [|r2 [|r1 [|r0 [|]]]]; simpl in Hlength; try lia.
  - eexists. apply opens.
  - eapply Hfree; [apply opens | simpl; lra].
  - edestruct (Hfree r1) as [a Ha]; [apply opens | simpl; lra|]. apply (Hfree r2 _ a Ha). simpl. lra.
  - destruct (coin r1 && coin r0)%bool eqn:Hcoins.
    + edestruct (Hfree r0) as [a Ha]; [apply opens | simpl; lra|].
      destruct (Hfree r1 _ a Ha) as [b Hb]; [simpl; lra|]. apply (Hfree r2 _ b Hb). simpl. rewrite Hcoins. lra.
    + assert (Hb : exists b, books lossy_attack (half_of_the_baseline (4 / 5) 0) [r1; r0] b /\ 1 / 20 <= held b).
      { eexists. split.
        - eapply (proves lossy_attack _ [r1; r0] _ [r1; r0] [] [None; None] (1 / 20)).
          + apply (decides lossy_attack _ r1 [r0]); [apply (decides lossy_attack _ r0 [] _ (opens _ _))|];
              left; apply attack_free; simpl; lra.
          + exists []. reflexivity.
          + reflexivity.
          + reflexivity.
          + repeat constructor.
          + apply lossy_certifies. exact Hcoins.
        - simpl. eapply Rle_trans; [|apply Rmax_r]. lra. }
      destruct Hb as [b [Hb Hheld]].
      apply (attack_pays 2 (4 / 5) 0 lossy_share lossy_bets coin lossy_share_ok r2 [r1; r0] b Hb);
        [unfold lossy_share; rewrite Hcoins; lra | lra].
Qed.

Lemma lossy_breaks : prob_within (chance lossy_attack) 3 (broken lossy_attack) [] = 15 / 16.
Proof.
  assert (Hb : forall h : list (round bool),
    broken lossy_attack h = Rltb (slack lossy_attack (half_of_the_baseline (4 / 5) 0) h) (- 0))
    by apply attack_broken.
  assert (Hs : forall h : list (round bool), next_slack lossy_attack (half_of_the_baseline (4 / 5) 0) h
    = (1 / 2 - lossy_share h) * if Nat.leb 2 (length h) then 1 else 0) by apply attack_slack.
  assert (H0 : broken lossy_attack [] = false) by (rewrite Hb; apply Rltb_false; simpl; lra).
  assert (H1 : forall r : round bool, broken lossy_attack [r] = false)
    by (intro r; rewrite Hb; apply Rltb_false; simpl; rewrite Hs; simpl; lra).
  assert (H2 : forall r r' : round bool, broken lossy_attack [r'; r] = false)
    by (intros r r'; rewrite Hb; apply Rltb_false; simpl; rewrite !Hs; simpl; lra).
  assert (H3 : forall r r' r'' : round bool, broken lossy_attack [r''; r'; r] = negb (coin r' && coin r)%bool).
  { intros r r' r''. rewrite Hb. destruct (coin r' && coin r)%bool eqn:E; simpl negb.
    - apply Rltb_false. simpl. rewrite !Hs. simpl. rewrite E. lra.
    - apply Rltb_true. simpl. rewrite !Hs. simpl. rewrite E. lra. }
  unfold lossy_attack in *. rewrite !attack_step, !attack_end, H0, !H1, !H2, !H3. simpl. lra.
Qed.

Theorem bad_news_left_out : bad_news_left_out_statement.
Proof.
  exists lossy_attack. pose proof lossy_share_ok as Hs.
  assert (Hw : world_is_law lossy_attack) by (apply attack_world; exact Hs).
  assert (Hc : coin_unseen lossy_attack) by apply attack_coin.
  assert (Hr : rewards_in_bounds lossy_attack) by apply attack_bounds.
  assert (Hb : baseline_below_ceiling lossy_attack) by (apply attack_ceiling; exact Hs).
  assert (Hh : holdout_kept lossy_attack) by (apply attack_holdout; exact Hs).
  assert (Hd : promise_declared lossy_attack) by (apply attack_declared; lra).
  assert (Hf : bet_fixed_before_coin lossy_attack) by (intros m l _ newer h; reflexivity).
  assert (Hsplit : delta_split lossy_attack (4 / 5)) by (unfold delta_split; simpl; lra).
  pose proof lossy_ruin as Hn. pose proof lossy_paid as Hp. pose proof lossy_breaks as H1.
  assert (Hnot : ~ no_round_left_out lossy_attack).
  { intro He. pose proof (promise_kept lossy_attack (4 / 5) Hw Hc Hr Hb Hh Hf Hn He Hp Hd Hsplit 3%nat). lra. }
  tauto.
Qed.

(** *** Selections *)

(** One round in four is good; the next one only tells which it was. *)
Definition tells_later (h : list bool) : law bool :=
  if Nat.even (length h) then [(1 / 4, true); (3 / 4, false)] else [(1, hd true h)].
Definition quadruple (l : R) (h : list bool) (good : bool) : R :=
  if Nat.even (length h) then if good then 4 else 0 else 1.

Theorem learning_from_a_selection : learning_from_a_selection_statement.
Proof.
  intros counts Hcounts. exists tells_later, quadruple.
  assert (Hlaw : forall h, is_law (tells_later h)).
  { intro h. unfold tells_later. destruct (Nat.even (length h)); split; simpl; try lra; repeat constructor; simpl;
      lra. }
  assert (Hfair : factors_fair tells_later [(1, 1)] quadruple).
  { intros w l _ h. unfold quadruple, tells_later. destruct (Nat.even (length h)); split; simpl; try lra.
    - intros []; lra.
    - intro; lra. }
  assert (H : prob_within tells_later 3 (some_prefix_refuted [(1, 1)] quadruple counts (1 / 4)) [] = 7 / 16).
  { assert (H4 : / (1 / 4) = 4) by field.
    destruct Hcounts as [-> | ->]; unfold prob_within, some_prefix_refuted, tells_later, prefixes, existsb, learned,
      mixture, quadruple, own_reward, later_reward, round_at, oldest; simpl;
      unfold own_reward, later_reward, round_at, oldest; simpl; rewrite H4;
      repeat (first [rewrite (Rleb_false 4) by lra | rewrite (proj2 (Rleb_true 4 _)) by lra]; simpl); lra. }
  enough (Hnot : ~ fixed_before counts) by tauto. intro Hfixed.
  assert (Hok : rates_ok [(1, 1)]) by (split; simpl; [repeat constructor; simpl; lra | lra]).
  assert (H0 : 0 < 1 / 4) by lra.
  pose proof (order_of_learning _ tells_later [(1, 1)] quadruple counts (1 / 4) 3%nat Hlaw Hok Hfair H0 Hfixed). lra.
Qed.
