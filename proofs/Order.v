(** The order of learning: what may be a function of what.

    Evidence is a product of factors, one for each round, each with a mean of at most 1 given everything before. What
    has been learned at a time is the product over a *prefix* of the rounds in the order of their decisions. The bound
    holds for all prefixes at once, so when a reward comes may depend on anything, its own value included. What must not
    depend on anything later is fixed before the round: whether the round counts, and how. *)

From Coq Require Import Lia.
From Surefoot Require Export Game.

(** Computed at a time, for the round of a number (the first is number 0): known by then, and not changed since. *)
Definition fixed_before {Round X} (f : list Round -> nat -> X) : Prop :=
  forall newer h, f (newer ++ h) (length h) = f h (length h).

(** The first n rounds of a history, and the round of a number. *)
Definition oldest {Round} (n : nat) (now : list Round) : list Round := skipn (length now - n) now.
Definition round_at {Round} (i : nat) (now : list Round) : option Round := hd_error (oldest (S i) now).

(** What has entered is a prefix of what was decided. *)
Definition decision_order {Round} (now entered : list Round) : Prop := exists newer, now = newer ++ entered.

Fixpoint prefixes {Round} (now : list Round) : list (list Round) :=
  now :: match now with [] => [] | _ :: past => prefixes past end.

(** Weights and rates; [mixture] is the sum of the weights times a quantity at each rate. *)
Definition rates_ok (rates : list (R * R)) : Prop :=
  Forall (fun wl => 0 <= fst wl /\ 0 < snd wl) rates /\ fold_right (fun wl total => fst wl + total) 0 rates <= 1.

Definition mixture (rates : list (R * R)) (f : R -> R) : R :=
  fold_right (fun wl total => fst wl * f (snd wl) + total) 0 rates.

Section Order.
  Variable Round : Type.
  Notation history := (list Round).
  Variable chance : history -> law Round.
  Hypothesis chance_is_law : forall h, is_law (chance h).

  (** The factor that a rate gets from a round, decided after h. *)
  Variable rates : list (R * R).
  Variable factor : R -> history -> Round -> R.

  Definition factors_fair : Prop :=
    forall w l, In (w, l) rates -> forall h,
    (forall r, 0 <= factor l h r) /\ mean (chance h) (factor l h) <= 1.

  Fixpoint product (l : R) (h : history) : R :=
    match h with
    | [] => 1
    | r :: past => product l past * factor l past r
    end.

  (** Evidence against the truth of what is claimed with confidence 1 - delta. *)
  Definition refuted (delta : R) (h : history) : bool := Rleb (/ delta) (mixture rates (fun l => product l h)).

  (** What has been learned of a prefix, as it is computed now: some rounds do not count. *)
  Variable counts : history -> nat -> bool.

  Fixpoint learned (now : history) (l : R) (h : history) : R :=
    match h with
    | [] => 1
    | r :: past => learned now l past * (if counts now (length past) then factor l past r else 1)
    end.

  Definition some_prefix_refuted (delta : R) (now : history) : bool :=
    existsb (fun h => Rleb (/ delta) (mixture rates (fun l => learned now l h))) (prefixes now).
End Order.

Arguments factors_fair {Round}.
Arguments product {Round}.
Arguments refuted {Round}.
Arguments learned {Round}.
Arguments some_prefix_refuted {Round}.

(** ** The two theorems of this file *)

Definition evidence_is_rare_statement : Prop :=
  forall Round (chance : list Round -> law Round) rates factor delta n,
  (forall h, is_law (chance h)) -> rates_ok rates -> factors_fair chance rates factor -> 0 < delta ->
  prob_within chance n (refuted rates factor delta) [] <= delta.

Definition order_of_learning_statement : Prop :=
  forall Round (chance : list Round -> law Round) rates factor counts delta n,
  (forall h, is_law (chance h)) -> rates_ok rates -> factors_fair chance rates factor -> 0 < delta ->
  fixed_before counts ->
  prob_within chance n (some_prefix_refuted rates factor counts delta) [] <= delta.

(** What is taken from a frozen state, such as the bank of a lease, is fixed: [freeze] says how many rounds it
    knows of. *)
Definition frozen_is_fixed_statement : Prop :=
  forall Round X (freeze : list Round -> nat) (f : list Round -> X),
  (forall h, (freeze h <= length h)%nat) -> fixed_before (fun now i => f (oldest (freeze (oldest i now)) now)).

(** ** Proofs *)

Lemma oldest_of_longer {Round} n (newer h : list Round) : (n <= length h)%nat -> oldest n (newer ++ h) = oldest n h.
Proof.
  intro H. unfold oldest. rewrite app_length, skipn_app.
  rewrite (skipn_all2 newer) by lia. simpl. f_equal. lia.
Qed.

Lemma oldest_all {Round} (h : list Round) : oldest (length h) h = h.
Proof. unfold oldest. rewrite Nat.sub_diag. reflexivity. Qed.

Lemma oldest_prefix {Round} (newer h : list Round) : oldest (length h) (newer ++ h) = h.
Proof. rewrite oldest_of_longer by lia. apply oldest_all. Qed.

Lemma frozen_is_fixed : frozen_is_fixed_statement.
Proof.
  intros Round X freeze f Hfreeze newer h. rewrite oldest_prefix, oldest_all.
  f_equal. apply oldest_of_longer, Hfreeze.
Qed.

Lemma mixture_mono rates f g :
  Forall (fun wl => 0 <= fst wl /\ 0 < snd wl) rates -> (forall w l, In (w, l) rates -> f l <= g l) ->
  mixture rates f <= mixture rates g.
Proof.
  intros H Hfg. induction rates as [|[w l] rates IH]; simpl; [lra|].
  inversion H as [|? ? [Hw Hl] H']; subst; simpl in *.
  apply Rplus_le_compat; [apply Rmult_le_compat_l; [lra | apply (Hfg w); auto] | apply IH; eauto].
Qed.

Lemma mixture_const rates c : mixture rates (fun _ => c) = c * fold_right (fun wl total => fst wl + total) 0 rates.
Proof. induction rates as [|[w l] rates IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma mixture_nonneg rates f :
  Forall (fun wl => 0 <= fst wl /\ 0 < snd wl) rates -> (forall w l, In (w, l) rates -> 0 <= f l) ->
  0 <= mixture rates f.
Proof.
  intros H Hf. replace 0 with (mixture rates (fun _ => 0)) by (rewrite mixture_const; ring). apply mixture_mono; auto.
Qed.

Lemma mean_mixture {X} (D : law X) rates (f : R -> X -> R) :
  is_law D -> mean D (fun x => mixture rates (fun l => f l x)) = mixture rates (fun l => mean D (f l)).
Proof.
  intro HD. induction rates as [|[w l] rates IH]; simpl; [apply mean_const; assumption|].
  rewrite mean_plus, mean_scale, IH. reflexivity.
Qed.

Section Proofs.
  Variable Round : Type.
  Notation history := (list Round).
  Variable chance : history -> law Round.
  Hypothesis chance_is_law : forall h, is_law (chance h).
  Variable rates : list (R * R).
  Hypothesis rates_are_ok : rates_ok rates.
  Variable factor : R -> history -> Round -> R.
  Hypothesis fair : factors_fair chance rates factor.

  Lemma product_nonneg w l h : In (w, l) rates -> 0 <= product factor l h.
  Proof.
    intro Hl. induction h as [|r h IH]; simpl; [lra|]. apply Rmult_le_pos; [exact IH | apply (fair w l Hl h)].
  Qed.

  Lemma mixture_is_supermartingale : supermartingale chance (fun h => mixture rates (fun l => product factor l h)).
  Proof.
    destruct rates_are_ok as [Hr _]. split; intro h.
    - apply mixture_nonneg; [exact Hr|]. intros w l Hl. apply (product_nonneg w l h Hl).
    - rewrite (mean_mixture (chance h) rates (fun l r => product factor l (r :: h))) by apply chance_is_law.
      apply mixture_mono; [exact Hr|]. intros w l Hl. simpl. rewrite mean_scale.
      rewrite <- (Rmult_1_r (product factor l h)) at 2.
      apply Rmult_le_compat_l; [apply (product_nonneg w l h Hl) | apply (fair w l Hl h)].
  Qed.

  Lemma evidence_is_rare delta n : 0 < delta -> prob_within chance n (refuted rates factor delta) [] <= delta.
  Proof.
    intro Hd. assert (Hi : 0 < / delta) by (apply Rinv_0_lt_compat; exact Hd).
    apply Rmult_le_reg_l with (/ delta); [exact Hi|]. rewrite Rinv_l by lra.
    eapply Rle_trans; [apply (ville _ chance chance_is_law _ (/ delta) n mixture_is_supermartingale Hi)|].
    simpl. rewrite mixture_const. destruct rates_are_ok as [_ H]. lra.
  Qed.
End Proofs.

Lemma ever_of_prefix {Round} (A : list Round -> bool) now h :
  In h (prefixes now) -> A h = true -> ever A now = true.
Proof.
  induction now as [|r now IH]; simpl; intros [<-|H] HA; try contradiction; rewrite ?HA; try reflexivity.
  rewrite IH by assumption. apply Bool.orb_true_r.
Qed.

Lemma prefix_in_order {Round} (now h : list Round) : In h (prefixes now) <-> decision_order now h.
Proof.
  split.
  - induction now as [|r now IH]; simpl.
    + intros [<-|[]]. exists []; reflexivity.
    + intros [<-|H]; [exists []; reflexivity|]. destruct (IH H) as [newer ->]. exists (r :: newer); reflexivity.
  - intros [newer ->]. induction newer as [|r newer IH]; simpl; [destruct h; left; reflexivity | right; exact IH].
Qed.

Theorem evidence_is_rare_ever : evidence_is_rare_statement.
Proof. unfold evidence_is_rare_statement. intros. apply evidence_is_rare; assumption. Qed.

(** A round that does not count has the factor 1, which is fair as long as that was settled before the round. *)
Theorem order_of_learning : order_of_learning_statement.
Proof.
  unfold order_of_learning_statement. intros Round chance rates factor counts delta n Hlaw Hrates Hfair Hd Hfixed.
  set (counted := fun l h r => if counts h (length h) then factor l h r else 1).
  assert (Hsame : forall now l h, decision_order now h -> learned factor counts now l h = product counted l h).
  { intros now l h. induction h as [|r h IH]; intros [newer ->]; simpl; [reflexivity|].
    rewrite IH by (exists (newer ++ [r]); rewrite <- app_assoc; reflexivity). unfold counted at 2.
    replace (newer ++ r :: h) with ((newer ++ [r]) ++ h) by (rewrite <- app_assoc; reflexivity).
    rewrite Hfixed. reflexivity. }
  apply Rle_trans with (prob_within chance n (refuted rates counted delta) []).
  - apply prob_follows; [exact Hlaw|]. intros now H. unfold some_prefix_refuted in H.
    apply existsb_exists in H. destruct H as [h [Hin H]]. apply (ever_of_prefix _ now h Hin).
    unfold refuted. apply prefix_in_order in Hin. apply Rleb_true. apply Rleb_true in H.
    eapply Rle_trans; [exact H|]. apply mixture_mono; [apply Hrates|]. intros. rewrite Hsame by assumption. lra.
  - apply evidence_is_rare; try assumption. intros w l Hl h. destruct (Hfair w l Hl h) as [H0 H1]. unfold counted.
    destruct (counts h (length h)); split; try (intro; lra); try assumption.
    rewrite mean_const by apply Hlaw. lra.
Qed.

(** ** Linear policies: the factors behind every radius

    The noise of a reward is sub-Gaussian given everything before, and the row is fixed before the noise. *)
Lemma learning_is_fair {Round} (chance : list Round -> law Round) (noise : Round -> R) (row : list Round -> R) sigma :
  (forall h, is_law (chance h)) ->
  (forall h t, mean (chance h) (fun r => exp (t * noise r)) <= exp (t * t * (sigma * sigma) / 2)) ->
  forall rates,
  factors_fair chance rates
    (fun u h r => exp (u * row h * noise r - (u * row h) * (u * row h) * (sigma * sigma) / 2)).
Proof.
  intros Hlaw Hnoise rates w u _ h. split; [intro; left; apply exp_pos|].
  set (t := u * row h). set (c := t * t * (sigma * sigma) / 2).
  rewrite (mean_ext _ _ (fun r => exp (- c) * exp (t * noise r)))
    by (intro r; rewrite <- exp_plus; f_equal; unfold c, t; ring).
  rewrite mean_scale. apply Rle_trans with (exp (- c) * exp c).
  - apply Rmult_le_compat_l; [left; apply exp_pos | apply Hnoise].
  - rewrite <- exp_plus, Rplus_opp_l, exp_0. lra.
Qed.
