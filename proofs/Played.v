(** The promise on the actions played: the slack of what the coins chose, not of what they would choose on average.

    The difference is the luck of the coins, N = sum of sign (U - p)(mu_a - mu_b). It is bounded at all times at once,
    at a delta of its own. Nothing is free here: the learner plays only while the bank of what was played pays the worst
    of one of its rounds. One process; such a guard cannot be leased. *)

From Coq Require Import Lia.
From Surefoot Require Export Promise Bennett.

Section Played.
  Variable g : guard.
  Notation history := (list (round (Outcome g))).
  Implicit Types (m : metric (Outcome g)) (h now : history).

  (** Rates and delta of the coins' luck, for each metric. *)
  Variable coin_rates : metric (Outcome g) -> list (R * R).
  Variable coin_delta : metric (Outcome g) -> R.

  (** Whether the learner was played; with a share of 0 the baseline is. *)
  Definition side (h : history) (r : round (Outcome g)) : R := if (coin r && Rltb 0 (share g h))%bool then 1 else 0.

  Definition stake m h : R := sign m * (mean_learner g m h - mean_baseline g m h).

  Fixpoint played_slack m h : R :=
    match h with
    | [] => 0
    | r :: past => played_slack m past + slack_of m (side past r) (mean_learner g m past) (mean_baseline g m past)
    end.

  (** Variance of the coins. *)
  Fixpoint coin_variance h : R :=
    match h with
    | [] => 0
    | _ :: past => coin_variance past + share g past * (1 - share g past)
    end.

  Fixpoint worst_of_all m h : R :=
    match h with
    | [] => 0
    | _ :: past => worst_of_all m past + next_worst g m past
    end.

  (** That the coins have cost no more than x. *)
  Definition luck_certified m h (x : R) : Prop :=
    / coin_delta m
    <= mixture (coin_rates m) (fun l => exp (l * x - beyond_tangent (l * (1 - low m)) * coin_variance h)).

  Definition luck_wrong m : event (round (Outcome g)) :=
    refuted (coin_rates m)
      (fun l h r => exp (- (l * ((side h r - share g h) * stake m h))
                         - beyond_tangent (l * (1 - low m)) * (share g h * (1 - share g h))))
      (coin_delta m).

  (** The two banks: of the average slack, and of what was played. *)
  Inductive played_books m : history -> R -> R -> Prop :=
  | opens_played : played_books m [] (reserve m) (reserve m)
  | decides_played r h average bank :
      played_books m h average bank -> share g h = 0 \/ worst_of m 1 <= bank ->
      played_books m (r :: h) (average - next_worst g m h) (bank - side h r * worst_of m 1)
  | proves_played h average bank entered x :
      played_books m h average bank -> decision_order h entered -> certified g m h entered x ->
      played_books m h (Rmax average (x + reserve m - (worst_of_all m h - worst_of_all m entered))) bank
  | bounds_luck h average bank x :
      played_books m h average bank -> luck_certified m h x ->
      played_books m h average (Rmax bank (average - x)).

  Definition played_rounds_paid : Prop :=
    forall m h, In m (metrics g) -> exists average bank, played_books m h average bank.

  Definition coins_declared : Prop :=
    forall m, In m (metrics g) ->
    rates_ok (coin_rates m) /\ 0 < coin_delta m /\ low m < 1 /\ (sign m = 1 \/ sign m = -1).

  Definition delta_split_with_coins (total : R) : Prop :=
    fold_right (fun m sum => (delta m + coin_delta m) + sum) 0 (metrics g) <= total.

  Definition played_broken h : bool := existsb (fun m => Rltb (played_slack m h) (- reserve m)) (metrics g).
End Played.

(** ** Statement *)

Definition played_promise_kept_statement : Prop :=
  forall (g : guard) coin_rates coin_delta (delta : R),
  world_is_law g -> coin_unseen g -> rewards_in_bounds g -> baseline_below_ceiling g -> holdout_kept g ->
  bet_fixed_before_coin g -> bet_never_ruined g -> no_round_left_out g -> promise_declared g ->
  coins_declared g coin_rates coin_delta ->
  played_rounds_paid g coin_rates coin_delta ->
  delta_split_with_coins g coin_delta delta ->
  forall n, prob_within (chance g) n (played_broken g) [] <= delta.

(** ** Proofs *)

Section Proof.
  Variable g : guard.
  Notation history := (list (round (Outcome g))).
  Variable coin_rates : metric (Outcome g) -> list (R * R).
  Variable coin_delta : metric (Outcome g) -> R.
  Implicit Types (m : metric (Outcome g)) (h now : history).

  Hypothesis Hlaw : world_is_law g.
  Hypothesis Hcoin : coin_unseen g.
  Hypothesis Hbounds : rewards_in_bounds g.
  Hypothesis Hmost : baseline_below_ceiling g.
  Hypothesis Hholdout : holdout_kept g.
  Hypothesis Hdecl : promise_declared g.
  Hypothesis Hcoins : coins_declared g coin_rates coin_delta.

  Lemma share_is_probability h : 0 <= share g h < 1.
  Proof. destruct Hholdout as [eps [Heps H]]. specialize (H h). lra. Qed.

  Lemma learner_within m h : In m (metrics g) -> low m <= mean_learner g m h <= 1.
  Proof. intro Hm. apply mean_within; [apply Hlaw | intro; apply Hbounds; exact Hm]. Qed.

  Lemma baseline_within m h : In m (metrics g) -> low m <= mean_baseline g m h <= 1.
  Proof. intro Hm. apply mean_within; [apply Hlaw | intro; apply Hbounds; exact Hm]. Qed.

  Lemma luck_is_rarely_wrong m n :
    In m (metrics g) -> prob_within (chance g) n (luck_wrong g coin_rates coin_delta m) [] <= coin_delta m.
  Proof.
    intro Hm. destruct (Hcoins m Hm) as (Hrates & Hdelta & Hlow & Hsign).
    apply evidence_is_rare; try assumption. intros w l Hl h.
    destruct (rate_positive _ _ _ Hrates Hl) as [_ Hpos]. split; [intro; left; apply exp_pos|].
    set (p := share g h). set (v := stake g m h). set (c := 1 - low m).
    set (K := beyond_tangent (l * c) * (p * (1 - p))).
    pose proof (share_is_probability h) as Hp. fold p in Hp.
    assert (Hv : - c <= v <= c).
    { pose proof (learner_within m h Hm). pose proof (baseline_within m h Hm). unfold v, c, stake.
      destruct Hsign as [-> | ->]; lra. }
    eapply Rle_trans; [right; exact (Hcoin h (fun U _ _ =>
      exp (- (l * (((if (U && Rltb 0 p)%bool then 1 else 0) - p) * v)) - K)))|].
    cbv beta. rewrite !mean_const by apply Hlaw. fold p. cbn [andb]. destruct (Rltb 0 p) eqn:E.
    - pose proof (coin_luck_bounded p v c l ltac:(lra) Hv ltac:(unfold c; lra) Hpos) as H. fold K in H.
      assert (Hsplit : forall x, exp (- x - K) = exp (- x) * exp (- K)) by (intro x; rewrite <- exp_plus; reflexivity).
      rewrite !Hsplit. set (e1 := exp (- (l * ((1 - p) * v)))) in *. set (e0 := exp (- (l * ((0 - p) * v)))) in *.
      replace (p * (e1 * exp (- K)) + (1 - p) * (e0 * exp (- K))) with ((p * e1 + (1 - p) * e0) * exp (- K)) by ring.
      apply Rle_trans with (exp K * exp (- K)).
      + apply Rmult_le_compat_r; [left; apply exp_pos | exact H].
      + rewrite <- exp_plus, Rplus_opp_r, exp_0. lra.
    - assert (Hp0 : p = 0).
      { destruct (proj1 Hp) as [H|H]; [|symmetry; exact H]. apply Rltb_true in H. congruence. }
      unfold K. rewrite Hp0. replace (- (l * ((0 - 0) * v)) - beyond_tangent (l * c) * (0 * (1 - 0))) with 0 by ring.
      rewrite exp_0. lra.
  Qed.

  (** What was played is the average slack and the luck of the coins. *)
  Fixpoint luck m h : R :=
    match h with
    | [] => 0
    | r :: past => luck m past + (side g past r - share g past) * stake g m past
    end.

  Lemma played_is_average_and_luck m h : played_slack g m h = slack g m h + luck m h.
  Proof.
    induction h as [|r h IH]; simpl; [lra|]. rewrite IH. unfold next_slack, slack_of, stake. ring.
  Qed.

  Lemma luck_is_true m h x :
    In m (metrics g) -> luck_certified g coin_rates coin_delta m h x ->
    ever (luck_wrong g coin_rates coin_delta m) h = false -> - x <= luck m h.
  Proof.
    intros Hm Hcert Hgood. destruct (Hcoins m Hm) as (Hrates & _).
    destruct (Rle_dec (- x) (luck m h)) as [|Hx]; [assumption|]. exfalso.
    enough (ever (luck_wrong g coin_rates coin_delta m) h = true) by congruence.
    apply (ever_of_prefix _ h h); [apply prefix_in_order; exists []; reflexivity|].
    apply Rleb_true. eapply Rle_trans; [exact Hcert|]. apply mixture_mono; [apply Hrates|]. intros w l Hl.
    destruct (rate_positive _ _ _ Hrates Hl) as [_ Hpos].
    assert (Hprod : product (fun l h r => exp (- (l * ((side g h r - share g h) * stake g m h))
        - beyond_tangent (l * (1 - low m)) * (share g h * (1 - share g h)))) l h
      = exp (- (l * luck m h) - beyond_tangent (l * (1 - low m)) * coin_variance g h)).
    { clear. induction h as [|r h IH]; simpl.
      - rewrite !Rmult_0_r, Ropp_0, Rminus_0_r, exp_0. reflexivity.
      - rewrite IH, <- exp_plus. f_equal. ring. }
    rewrite Hprod. left. apply exp_increasing.
    assert (l * x < l * - luck m h) by (apply Rmult_lt_compat_l; lra). lra.
  Qed.

  Hypothesis certificates : forall m now h x, In m (metrics g) ->
    decision_order now h -> certified g m now h x -> ever (bank_wrong g m) now = false -> x <= slack g m h.

  Lemma next_at_least m h : In m (metrics g) -> - next_worst g m h <= next_slack g m h.
  Proof.
    intro Hm. apply worst_is_worst; [apply learner_within; exact Hm|].
    split; [apply baseline_within; exact Hm | apply Hmost; exact Hm].
  Qed.

  Lemma slack_since m newer entered :
    In m (metrics g) ->
    slack g m entered - (worst_of_all g m (newer ++ entered) - worst_of_all g m entered) <= slack g m (newer ++
      entered).
  Proof.
    intro Hm. induction newer as [|r newer IH]; simpl; [lra|]. pose proof (next_at_least m (newer ++ entered) Hm). lra.
  Qed.

  Lemma played_books_are_true m h average bank :
    In m (metrics g) -> played_books g coin_rates coin_delta m h average bank ->
    ever (bank_wrong g m) h = false -> ever (luck_wrong g coin_rates coin_delta m) h = false ->
    average <= reserve m + slack g m h /\ bank <= reserve m + played_slack g m h /\
    - reserve m <= played_slack g m h.
  Proof.
    intro Hm. destruct (Hdecl m Hm) as (Hlow & Hone & Halpha & Hres & _).
    induction 1 as [|r h average bank Hb IH Hgate|h average bank entered x Hb IH Horder Hcert|h average bank x Hb IH
      Hcert];
      intros Hgood Hluck.
    - simpl. lra.
    - simpl in Hgood, Hluck. apply Bool.orb_false_iff in Hgood, Hluck.
      destruct (IH (proj2 Hgood) (proj2 Hluck)) as (H1 & H2 & H3).
      pose proof (next_at_least m h Hm) as Hnext. simpl.
      pose proof (learner_within m h Hm) as Ha. pose proof (baseline_within m h Hm) as Hbase.
      assert (Hbase' : low m <= mean_baseline g m h <= most m) by (split; [apply Hbase | apply Hmost; exact Hm]).
      assert (Hstep : - (side g h r * worst_of m 1)
        <= slack_of m (side g h r) (mean_learner g m h) (mean_baseline g m h)
        /\ (side g h r = 0 \/ (side g h r = 1 /\ worst_of m 1 <= bank))).
      { unfold side. destruct (coin r && Rltb 0 (share g h))%bool eqn:E.
        - split; [rewrite Rmult_1_l; apply worst_is_worst; assumption|]. right. split; [reflexivity|].
          destruct Hgate as [Hzero|Hpay]; [|exact Hpay]. apply andb_prop in E. destruct E as [_ E].
          apply Rltb_true in E. lra.
        - split; [|left; reflexivity]. unfold slack_of.
          assert (0 <= alpha m * mean_baseline g m h) by (apply Rmult_le_pos; lra). lra. }
      destruct Hstep as [Hstep Hside]. unfold next_slack in Hnext.
      pose proof (worst_nonneg m 1). repeat split; try (unfold next_slack; lra).
      destruct Hside as [Hside|[Hside Hpay]]; rewrite Hside in *; lra.
    - destruct (IH Hgood Hluck) as (H1 & H2 & H3). repeat split; try assumption. apply Rmax_lub; [exact H1|].
      pose proof (certificates m h entered x Hm Horder Hcert Hgood). destruct Horder as [newer ->].
      pose proof (slack_since m newer entered Hm). lra.
    - destruct (IH Hgood Hluck) as (H1 & H2 & H3). repeat split; try assumption. apply Rmax_lub; [exact H2|].
      pose proof (luck_is_true m h x Hm Hcert Hluck). rewrite played_is_average_and_luck. lra.
  Qed.
End Proof.

Theorem played_promise_kept : played_promise_kept_statement.
Proof.
  intros g coin_rates coin_delta delta Hlaw Hcoin Hbounds Hmost Hholdout Hfixed Hruin Hentered Hdecl Hcoins Hpaid
    Hsplit n.
  set (wrong := fun m h => (ever (bank_wrong g m) h || ever (luck_wrong g coin_rates coin_delta m) h)%bool).
  apply Rle_trans with (prob_within (chance g) n (fun h => existsb (fun m => wrong m h) (metrics g)) []).
  - apply prob_follows; [exact Hlaw|]. intros h H.
    apply (ever_of_prefix _ h h); [apply prefix_in_order; exists []; reflexivity|].
    unfold played_broken in H. apply existsb_exists in H. destruct H as [m [Hm H]]. apply existsb_exists. exists m.
    split; [exact Hm|]. unfold wrong.
    destruct (ever (bank_wrong g m) h) eqn:Hgood; [reflexivity|].
    destruct (ever (luck_wrong g coin_rates coin_delta m) h) eqn:Hluck; [reflexivity|]. exfalso.
    apply Rltb_true in H. destruct (Hpaid m h Hm) as [average [bank Hb]].
    assert (Hcert : forall m now h x, In m (metrics g) -> decision_order now h -> certified g m now h x ->
      ever (bank_wrong g m) now = false -> x <= slack g m h) by (intros; eapply certificate_is_true; eassumption).
    pose proof (played_books_are_true g coin_rates coin_delta Hlaw Hbounds Hmost Hdecl Hcoins Hcert m h
      average bank Hm Hb Hgood Hluck) as (_ & _ & Hfloor). lra.
  - eapply Rle_trans; [apply prob_union; exact Hlaw|]. eapply Rle_trans; [|exact Hsplit].
    assert (H : forall ms, (forall m, In m ms -> In m (metrics g)) ->
      fold_right (fun m sum => prob_within (chance g) n (wrong m) [] + sum) 0 ms
      <= fold_right (fun m sum => (Bets.delta m + coin_delta m) + sum) 0 ms).
    { induction ms as [|m ms IH]; intro Hin; simpl; [lra|].
      assert (Hm : In m (metrics g)) by (apply Hin; left; reflexivity).
      apply Rplus_le_compat; [|apply IH; intuition].
      eapply Rle_trans.
      - apply prob_follows with (B := fun h => existsb (fun A : event _ => A h)
          [bank_wrong g m; luck_wrong g coin_rates coin_delta m]); [exact Hlaw|].
        intros h H. unfold wrong in H. apply Bool.orb_true_iff in H.
        clear - H. induction h as [|r h IH]; simpl in *.
        + destruct H as [H|H]; apply Bool.orb_true_iff in H; destruct H as [H|H]; try discriminate; rewrite H;
            rewrite ?Bool.orb_true_r; reflexivity.
        + destruct H as [H|H]; apply Bool.orb_true_iff in H; destruct H as [H|H];
            try (rewrite H; rewrite ?Bool.orb_true_r; reflexivity);
            (rewrite IH by tauto); apply Bool.orb_true_r.
      - eapply Rle_trans; [apply (prob_union _ (chance g) Hlaw
          [bank_wrong g m; luck_wrong g coin_rates coin_delta m] (fun A => A) n [])|].
        simpl. pose proof (bank_is_rarely_wrong g m n Hlaw Hcoin Hbounds Hmost Hholdout Hruin Hdecl Hm).
        pose proof (luck_is_rarely_wrong g coin_rates coin_delta Hlaw Hcoin Hbounds Hholdout Hcoins m n Hm). lra. }
    apply H. tauto.
Qed.
