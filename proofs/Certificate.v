(** The checker of a guard's certificate, in whole numbers.

    A bank shows its wealths, the slack that they prove, and what it can pay. It is accepted if the sum over the rates
    of weight exp(log wealth - rate slack), from below, reaches the sum of the weights over delta, and if the bank pays
    the worst of the round. Numbers are floats, in units of 2^-2148. *)

From Coq Require Import ZArith List Reals Lra Lia Bool.
From Surefoot Require Import Checker Exponential Promise.
Import ListNotations.

(** ** The checker *)

Open Scope Z_scope.

Record bank := Bank {
  is_floor : bool;
  is_played : bool;
  bank_alpha : Z;
  bank_low : Z;
  bank_most : Z;
  bank_delta : Z;
  bank_share : Z;
  log_wealth : list Z;
  proved_slack : Z;
  bank_owed : Z;
  bank_reserve : Z;
  carried : Z;
  coin_luck : Z
}.

(** What the round may cost at worst, in units of 2^-4296. *)
Definition cost (b : bank) : Z :=
  let p := bank_share b in
  if p =? 0 then 0
  else if is_played b then
    Z.max 0 (if is_floor b then (unit - bank_alpha b) * bank_most b - bank_low b * unit
             else unit * unit - (unit + bank_alpha b) * bank_low b)
  else
    let weight := if is_floor b then bank_alpha b - p else bank_alpha b + p in
    let learner := if is_floor b then p * bank_low b else - (p * unit) in
    Z.max 0 (- (learner + Z.min (weight * bank_low b) (weight * bank_most b))).

(** What the bank can pay: by the slack that is proved, or by what was proved before. *)
Definition available (b : bank) : Z :=
  Z.max (proved_slack b + bank_reserve b - bank_owed b - coin_luck b) (carried b).

Fixpoint evidence (rates : list (Z * Z)) (wealths : list Z) (x : Z) : Z :=
  match rates, wealths with
  | (weight, rate) :: rates', wealth :: wealths' =>
      weight * exp_below (wealth * unit - rate * x) (unit * unit) + evidence rates' wealths' x
  | _, _ => 0
  end.

(** Exponents beyond this are no bank's, and are refused before they are computed with. *)
Definition highest_exponent : Z := 2 ^ 21 * (unit * unit).

Fixpoint exponents_ok (rates : list (Z * Z)) (wealths : list Z) (x : Z) : bool :=
  match rates, wealths with
  | (_, rate) :: rates', wealth :: wealths' =>
      (wealth * unit - rate * x <=? highest_exponent) && exponents_ok rates' wealths' x
  | _, _ => true
  end.

Definition total_weight (rates : list (Z * Z)) : Z := fold_right (fun wl sum => fst wl + sum) 0 rates.

Definition check_bank (rates : list (Z * Z)) (b : bank) : bool :=
  same_length rates (log_wealth b) && forallb (fun wl => (0 <=? fst wl) && (0 <? snd wl)) rates
  && (0 <? total_weight rates)
  && (0 <=? bank_owed b) && (0 <=? bank_reserve b) && (0 <=? coin_luck b)
  && (0 <? bank_alpha b) && (bank_alpha b <? unit) && (0 <? bank_delta b) && (bank_delta b <? unit)
  && (0 <=? bank_low b) && (bank_low b <=? bank_most b) && (bank_most b <=? unit)
  && (0 <=? bank_share b) && (bank_share b <? unit)
  && exponents_ok rates (log_wealth b) (proved_slack b)
  && (total_weight rates * fine * unit <=? evidence rates (log_wealth b) (proved_slack b) * bank_delta b)
  && ((cost b =? 0) || (cost b <=? available b * unit)).

(** Every metric has a bank, and every bank pays. *)
Definition check_guard (rates : list (Z * Z)) (banks : list bank) : bool :=
  negb (Nat.eqb (length banks) 0) && forallb (check_bank rates) banks.

(** ** What it means *)

Open Scope R_scope.

(** The rates with weights that add up to 1. *)
Definition real_rates (rates : list (Z * Z)) : list (R * R) :=
  map (fun wl => (real (fst wl) / real (total_weight rates), real (snd wl))) rates.

(** The metric that the bank is about. *)
Definition metric_of {Outcome} (reward : Outcome -> R) (rates : list (Z * Z)) (b : bank) : metric Outcome :=
  Metric Outcome reward (if is_floor b then 1 else -1) (real (bank_alpha b)) (real (bank_low b)) (real (bank_most b))
    (real (bank_reserve b)) (real (bank_delta b)) (real_rates rates).

Fixpoint wealths_at_least (wealth : R -> R) (rates : list (Z * Z)) (wealths : list Z) : Prop :=
  match rates, wealths with
  | (_, rate) :: rates', w :: wealths' => exp (real w) <= wealth (real rate) /\ wealths_at_least wealth rates' wealths'
  | _, _ => True
  end.

(** ** Statement: where the wealths are what they are said to be, an accepted bank certifies its slack, in the sense of
    the theorem, and the round is paid for. (Whether the wealths are what is said, the audit adds up.) *)

Definition accepted_banks_are_true_statement : Prop :=
  forall (g : guard) rates b (reward : Outcome g -> R) now h,
  let m := metric_of reward rates b in
  check_bank rates b = true ->
  wealths_at_least (fun l => wealth g m l now h) rates (log_wealth b) ->
  certified g m now h (real (proved_slack b)) /\
  rates_ok (Bets.rates m) /\
  (is_played b = false ->
   pays (worst_of m (real (bank_share b)))
     (Rmax (real (proved_slack b) + real (bank_reserve b) - real (bank_owed b) - real (coin_luck b))
        (real (carried b)))).

(** ** Proofs *)

#[local] Opaque unit fine.

Lemma real_plus a b : real (a + b) = real a + real b.
Proof. unfold real. rewrite plus_IZR. field. pose proof unit_positive. lra. Qed.
Lemma real_minus a b : real (a - b) = real a - real b.
Proof. unfold real. rewrite minus_IZR. field. pose proof unit_positive. lra. Qed.
Lemma real_opp a : real (- a) = - real a.
Proof. unfold real. rewrite opp_IZR. field. pose proof unit_positive. lra. Qed.
Lemma real_le a b : (a <= b)%Z -> real a <= real b.
Proof.
  intro H. apply IZR_le in H. unfold real. apply Rmult_le_compat_r; [|exact H].
  left. apply Rinv_0_lt_compat, unit_positive.
Qed.
Lemma real_lt a b : (a < b)%Z -> real a < real b.
Proof.
  intro H. apply IZR_lt in H. unfold real. apply Rmult_lt_compat_r; [|exact H]. apply Rinv_0_lt_compat, unit_positive.
Qed.
Lemma real_zero : real 0 = 0.
Proof. unfold real, Rdiv. apply Rmult_0_l. Qed.
Lemma real_unit : real unit = 1.
Proof. unfold real. field. pose proof unit_positive. lra. Qed.
Lemma real_max a b : real (Z.max a b) = Rmax (real a) (real b).
Proof.
  destruct (Z.max_spec a b) as [[H ->]|[H ->]].
  - rewrite Rmax_right; [reflexivity | apply real_le; lia].
  - rewrite Rmax_left; [reflexivity | apply real_le; exact H].
Qed.

(** Products count in units of 2^-4296. *)
Definition real2 (z : Z) : R := IZR z / (IZR unit * IZR unit).

Lemma real2_mult a b : real2 (a * b) = real a * real b.
Proof. unfold real2, real. rewrite mult_IZR. field. pose proof unit_positive. lra. Qed.
Lemma real2_plus a b : real2 (a + b) = real2 a + real2 b.
Proof. unfold real2. rewrite plus_IZR. field. pose proof unit_positive. lra. Qed.
Lemma real2_opp a : real2 (- a) = - real2 a.
Proof. unfold real2. rewrite opp_IZR. field. pose proof unit_positive. lra. Qed.
Lemma real2_zero : real2 0 = 0.
Proof. unfold real2, Rdiv. apply Rmult_0_l. Qed.
Lemma real2_le a b : (a <= b)%Z -> real2 a <= real2 b.
Proof.
  intro H. apply IZR_le in H. unfold real2. apply Rmult_le_compat_r; [|exact H].
  left. apply Rinv_0_lt_compat. apply Rmult_lt_0_compat; apply unit_positive.
Qed.
Lemma real2_max a b : real2 (Z.max a b) = Rmax (real2 a) (real2 b).
Proof.
  destruct (Z.max_spec a b) as [[H ->]|[H ->]].
  - rewrite Rmax_right; [reflexivity | apply real2_le; lia].
  - rewrite Rmax_left; [reflexivity | apply real2_le; exact H].
Qed.
Lemma real2_min a b : real2 (Z.min a b) = Rmin (real2 a) (real2 b).
Proof.
  destruct (Z.min_spec a b) as [[H ->]|[H ->]].
  - rewrite Rmin_left; [reflexivity | apply real2_le; lia].
  - rewrite Rmin_right; [reflexivity | apply real2_le; exact H].
Qed.

Lemma cost_is_worst {Outcome} (reward : Outcome -> R) rates b :
  is_played b = false -> 0 <= real (bank_alpha b) -> 0 <= real (bank_low b) <= 1 -> 0 <= real (bank_most b) ->
  0 <= real (bank_share b) ->
  real2 (cost b) = worst_of (metric_of reward rates b) (real (bank_share b)).
Proof.
  intros Hplayed Halpha Hlow Hmost Hp. unfold cost, worst_of. cbn [sign alpha low most metric_of]. rewrite Hplayed.
  set (p := real (bank_share b)) in *. set (lo := real (bank_low b)) in *. set (hi := real (bank_most b)) in *.
  set (al := real (bank_alpha b)) in *.
  destruct (Z.eqb_spec (bank_share b) 0) as [E|E].
  - assert (Hp0 : p = 0) by (unfold p; rewrite E; apply real_zero). rewrite Hp0, real2_zero.
    rewrite !Rmult_0_r, Rmult_0_l, Rminus_0_r, (Rmin_left 0 0) by lra. rewrite Rplus_0_l.
    symmetry. apply Rmax_left. enough (0 <= Rmin (al * lo) (al * hi)) by lra.
    apply Rmin_glb; apply Rmult_le_pos; lra.
  - rewrite real2_max, real2_zero, real2_opp, real2_plus, real2_min, !real2_mult. fold lo hi.
    assert (p * lo <= p) by (rewrite <- (Rmult_1_r p) at 2; apply Rmult_le_compat_l; lra).
    destruct (is_floor b).
    + rewrite real_minus, real2_mult. fold al p lo. rewrite !Rmult_1_l, (Rmin_left (p * lo) p) by lra. reflexivity.
    + rewrite real_plus, real2_opp, real2_mult, real_unit. fold al p.
      replace (-1 * p * lo) with (- (p * lo)) by ring. replace (-1 * p) with (- p) by ring.
      rewrite (Rmin_right (- (p * lo)) (- p)) by lra. rewrite Rmult_1_r.
      replace (al - - p) with (al + p) by ring. reflexivity.
Qed.

Lemma evidence_below rates wealths x :
  Forall (fun wl => (0 <= fst wl)%Z) rates -> length rates = length wealths ->
  forall wealth, wealths_at_least wealth rates wealths ->
  IZR (evidence rates wealths x)
  <= IZR fine * fold_right (fun wl sum =>
       IZR (fst wl) * (wealth (real (snd wl)) * exp (- (real (snd wl) * real x))) + sum) 0 rates.
Proof.
  pose proof fine_positive as Hf. pose proof unit_positive as Hu. revert wealths.
  induction rates as [|[weight rate] rates IH]; intros [|w wealths] Hpos Hl wealth Hw; simpl in *; try discriminate;
    [lra|].
  inversion Hpos as [|? ? Hweight Hpos']; subst. simpl in Hweight. destruct Hw as [Hw0 Hw].
  specialize (IH wealths Hpos' ltac:(congruence) wealth Hw).
  rewrite plus_IZR, mult_IZR, Rmult_plus_distr_l. apply Rplus_le_compat; [|exact IH].
  replace (IZR fine * (IZR weight * (wealth (real rate) * exp (- (real rate * real x)))))
    with (IZR weight * (IZR fine * (wealth (real rate) * exp (- (real rate * real x))))) by ring.
  apply Rmult_le_compat_l; [apply IZR_le; exact Hweight|].
  destruct (exp_below_is_below (w * unit - rate * x)%Z (unit * unit)%Z) as [_ H]; [reflexivity|].
  eapply Rle_trans; [exact H|]. apply Rmult_le_compat_l; [lra|].
  replace (IZR (w * unit - rate * x) / IZR (unit * unit)) with (real w + - (real rate * real x))
    by (unfold real; rewrite minus_IZR, !mult_IZR; field; lra).
  rewrite exp_plus. apply Rmult_le_compat_r; [left; apply exp_pos | exact Hw0].
Qed.

Lemma real_rates_mixture rates f :
  0 < real (total_weight rates) ->
  mixture (real_rates rates) f
  = fold_right (fun wl sum => IZR (fst wl) * f (real (snd wl)) + sum) 0 rates / IZR (total_weight rates).
Proof.
  intro H. pose proof unit_positive as Hu.
  assert (Ht : IZR (total_weight rates) = IZR unit * real (total_weight rates)) by (unfold real; field; lra).
  assert (Hpos : 0 < IZR (total_weight rates)) by (rewrite Ht; apply Rmult_lt_0_compat; assumption).
  unfold real_rates. generalize dependent (total_weight rates). intros T HT HT' Hpos.
  induction rates as [|[w l] rates IH]; simpl; [field; lra|].
  change (real w / real T * f (real l) + mixture (map (fun wl => (real (fst wl) / real T, real (snd wl))) rates) f
    = (IZR w * f (real l) + fold_right (fun wl sum => IZR (fst wl) * f (real (snd wl)) + sum) 0 rates) / IZR T).
  rewrite IH. unfold real. field. lra.
Qed.

Lemma rates_are_ok rates :
  forallb (fun wl => (0 <=? fst wl) && (0 <? snd wl))%Z rates = true -> (0 < total_weight rates)%Z ->
  rates_ok (real_rates rates).
Proof.
  intros Hall Ht. apply real_lt in Ht. rewrite real_zero in Ht. split.
  - rewrite forallb_forall in Hall. apply Forall_forall. intros wl Hin. apply in_map_iff in Hin.
    destruct Hin as [[w l] [<- Hin]]. specialize (Hall _ Hin). apply andb_true_iff in Hall. destruct Hall as [Hw Hl].
    apply Z.leb_le, real_le in Hw. apply Z.ltb_lt, real_lt in Hl. rewrite real_zero in *. simpl in *.
    split; [|exact Hl].
    apply Rmult_le_pos; [exact Hw | left; apply Rinv_0_lt_compat; exact Ht].
  - right. pose proof (real_rates_mixture rates (fun _ => 1) Ht) as H. rewrite mixture_const, Rmult_1_l in H. rewrite H.
    assert (Hsum : fold_right (fun (wl : Z * Z) sum => IZR (fst wl) * 1 + sum) 0 rates = IZR (total_weight rates)).
    { clear. induction rates as [|[w l] rates IH]; simpl; [reflexivity|]. rewrite plus_IZR, IH. simpl. ring. }
    rewrite Hsum. field. intro E. unfold real in Ht. rewrite E in Ht. unfold Rdiv in Ht. rewrite Rmult_0_l in Ht. lra.
Qed.

Theorem accepted_banks_are_true : accepted_banks_are_true_statement.
Proof.
  intros g rates b reward now h m Hcheck Hwealth. pose proof unit_positive as Hu. pose proof fine_positive as Hf.
  unfold check_bank in Hcheck. repeat rewrite andb_true_iff in Hcheck.
  destruct Hcheck as [[[[[[[[[[[[[[[[[Hlength Hrates] Htotal] Howed] Hres] Hluck] Ha0] Ha1] Hd0] Hd1] Hl0] Hlm] Hm1]
    Hp0] Hp1] _] Hev] Hpay].
  apply same_length_true in Hlength. apply Z.ltb_lt in Htotal. apply Z.ltb_lt, real_lt in Hd0. rewrite real_zero in Hd0.
  apply Z.leb_le in Hev.
  assert (Hpos : Forall (fun wl : Z * Z => (0 <= fst wl)%Z) rates).
  { apply Forall_forall. intros wl Hin. rewrite forallb_forall in Hrates. specialize (Hrates wl Hin).
    apply andb_true_iff in Hrates. apply Z.leb_le, Hrates. }
  pose proof (real_lt _ _ Htotal) as Ht. rewrite real_zero in Ht.
  split; [|split].
  - unfold certified. cbn [delta Bets.rates metric_of m]. rewrite (real_rates_mixture rates _ Ht).
    pose proof (evidence_below rates (log_wealth b) (proved_slack b) Hpos Hlength _ Hwealth) as He.
    set (S := fold_right _ 0 rates) in *.
    apply IZR_le in Hev. rewrite !mult_IZR in Hev. apply IZR_lt in Htotal.
    apply Rmult_le_reg_l with (real (bank_delta b)); [exact Hd0|]. rewrite Rinv_r by lra.
    apply Rmult_le_reg_l with (IZR (total_weight rates) * IZR fine * IZR unit);
      [apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat|]; assumption|]. rewrite Rmult_1_r.
    eapply Rle_trans; [exact Hev|].
    replace (IZR (total_weight rates) * IZR fine * IZR unit * (real (bank_delta b) * (S / IZR (total_weight rates))))
      with (IZR fine * S * IZR (bank_delta b)) by (unfold real; field; lra).
    apply Rmult_le_compat_r; [|exact He].
    replace (IZR (bank_delta b)) with (IZR unit * real (bank_delta b)) by (unfold real; field; lra).
    apply Rmult_le_pos; lra.
  - apply rates_are_ok; assumption.
  - intro Hplayed.
    apply Z.ltb_lt, real_lt in Ha0. apply Z.leb_le, real_le in Hl0. apply Z.leb_le, real_le in Hlm.
    apply Z.leb_le, real_le in Hm1. apply Z.leb_le, real_le in Hp0. rewrite real_zero in *. rewrite real_unit in *.
    unfold m. rewrite <- cost_is_worst by (assumption || lra).
    apply orb_true_iff in Hpay. destruct Hpay as [Hpay|Hpay].
    + left. apply Z.eqb_eq in Hpay. rewrite Hpay. apply real2_zero.
    + right. apply Z.leb_le, real2_le in Hpay. rewrite real2_mult, real_unit, Rmult_1_r in Hpay.
      unfold available in Hpay.
      rewrite real_max, !real_minus, real_plus in Hpay. exact Hpay.
Qed.
