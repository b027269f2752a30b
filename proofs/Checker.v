(** The checker of proofs, in whole numbers: `surefoot.check` without its language.

    Every float is a whole multiple of 2^-1074. Numbers of a proof count in units of 2^-2148, bounds in 2^-4296, roots
    are rounded up. A question is written as a sum of pieces; each is bounded by its fact, and what they leave of the
    question by the fact for the rest. There is no tolerance.

    Roots and quotients come from outside, and neither is trusted: a root that is too small is refused, and any weight
    that is not negative is valid. *)

From Coq Require Import ZArith List Reals Lra Lia Bool.
From Surefoot Require Import Vectors.
Import ListNotations.

(** ** The checker *)

Open Scope Z_scope.

Definition unit : Z := 2 ^ 2148.

(** Quotients beyond this are no floats. *)
Definition widest : Z := 2 ^ 1000.

Inductive fact :=
| Linear (normal : list Z) (level : Z)
| Ball (radius : Z)
| Ellipsoid (center : list Z) (whitener : list (list Z)) (radius : Z)
| Box (lowest highest : Z).

Record piece := Piece { piece_fact : fact; piece_vector : list Z; piece_bound : Z }.

(** A proof without a value claims nothing. *)
Record proof := Proof { question : list Z; pieces : list piece; value : option Z; rest : option fact }.

Fixpoint zdot (x y : list Z) : Z :=
  match x, y with
  | a :: x', b :: y' => a * b + zdot x' y'
  | _, _ => 0
  end.

Fixpoint minus (x y : list Z) : list Z :=
  match x, y with
  | a :: x', b :: y' => (a - b) :: minus x' y'
  | _, _ => []
  end.

Definition same_length {A B} (x : list A) (y : list B) : bool := Nat.eqb (length x) (length y).

Fixpoint same (x y : list Z) : bool :=
  match x, y with
  | [], [] => true
  | a :: x', b :: y' => (a =? b) && same x' y'
  | _, _ => false
  end.

Fixpoint all_same (x y : list (list Z)) : bool :=
  match x, y with
  | [], [] => true
  | a :: x', b :: y' => same a b && all_same x' y'
  | _, _ => false
  end.

(** Every row has zeros behind its diagonal. *)
Fixpoint lower_triangular (before : nat) (rows : list (list Z)) : bool :=
  match rows with
  | [] => true
  | row :: rows' => forallb (Z.eqb 0) (skipn (S before) row) && lower_triangular (S before) rows'
  end.

Section Checker.
  Variable root : Z -> Z.
  Variable quotient : Z -> Z -> Z.

  (** A whole number whose square is more than s. *)
  Definition root_above (s : Z) : option Z :=
    let r := root s + 1 in if (0 <=? r) && (s <=? r * r) then Some r else None.

  (** The least <theta, x> over a fact, rounded down. *)
  Definition least (f : fact) (x : list Z) : option Z :=
    match f with
    | Linear _ _ => None
    | Box lowest highest =>
        Some (fold_right (fun entry sum => entry * (if entry <? 0 then highest else lowest) + sum) 0 x)
    | Ball radius =>
        match root_above (zdot x x) with
        | Some r => Some (- (Z.abs radius * r))
        | None => None
        end
    | Ellipsoid center whitener radius =>
        if same_length center x && same_length whitener x && forallb (fun row => same_length row x) whitener
           && lower_triangular 0 whitener
        then let widths := map (fun row => zdot row x / unit) whitener in
             match root_above (zdot widths widths) with
             | Some r => Some (zdot center x - Z.abs radius * (r + Z.of_nat (length x)))
             | None => None
             end
        else None
    end.

  (** What the fact gives for a piece, and the part of the piece that it covers. *)
  Definition bound_of (f : fact) (x : list Z) : option (Z * list Z) :=
    match f with
    | Linear normal level =>
        if same_length normal x then
          let square := zdot normal normal in
          let along := zdot x normal in
          let weight := if (0 <? along) && (along <? square * widest) then quotient along square else 0 in
          let covered := map (fun entry => weight * entry / unit) normal in
          if (0 <=? weight) && same (map (Z.mul unit) covered) (map (Z.mul weight) normal)
          then Some (weight * level, covered) else None
        else None
    | _ => match least f x with Some bound => Some (bound, x) | None => None end
    end.

  (** What the pieces prove together, and what they leave of the question. *)
  Fixpoint add_up (ps : list piece) (proved : Z) (remains : list Z) : option (Z * list Z) :=
    match ps with
    | [] => Some (proved, remains)
    | p :: ps' =>
        if same_length (piece_vector p) remains then
          match bound_of (piece_fact p) (piece_vector p) with
          | Some (bound, covered) =>
              if piece_bound p * unit <=? bound then add_up ps' (proved + bound) (minus remains covered) else None
          | None => None
          end
        else None
    end.

  Definition proved_by (p : proof) : option Z :=
    match add_up (pieces p) 0 (question p) with
    | Some (proved, remains) =>
        if forallb (Z.eqb 0) remains then Some proved
        else match rest p with
             | Some f => match least f remains with Some bound => Some (proved + bound) | None => None end
             | None => None
             end
    | None => None
    end.

  (** Whether a fact is the known one, or says less. *)
  Definition grants (known f : fact) : bool :=
    match known, f with
    | Linear normal level, Linear normal' level' => same normal normal' && (level' <=? level)
    | Ball radius, Ball radius' => radius <=? radius'
    | Ellipsoid center whitener radius, Ellipsoid center' whitener' radius' =>
        same center center' && all_same whitener whitener' && (radius <=? radius')
    | Box lowest highest, Box lowest' highest' => (lowest =? lowest') && (highest =? highest')
    | _, _ => false
    end.

  Definition facts_of (p : proof) : list fact :=
    map piece_fact (pieces p) ++ match rest p with Some f => [f] | None => [] end.

  Definition is_granted (granted : option (list fact)) (f : fact) : bool :=
    match granted with Some known => existsb (fun k => grants k f) known | None => true end.

  (** Whether the proof answers the question asked, rests on what is granted, and proves what it claims. *)
  Definition check (asked : option (list Z)) (granted : option (list fact)) (p : proof) : bool :=
    match asked with Some q => same q (question p) | None => true end &&
    match value p with
    | None => true
    | Some v => forallb (is_granted granted) (facts_of p)
                && match proved_by p with Some proved => v * unit <=? proved | None => false end
    end.
End Checker.

(** ** What facts say of theta *)

Open Scope R_scope.

Definition real (z : Z) : R := IZR z / IZR unit.

(** Sum of the rows of a matrix, each times its number. *)
Fixpoint combine_rows (z : list R) (rows : list (list Z)) (zero : list R) : list R :=
  match z, rows with
  | a :: z', row :: rows' => add (scale a (map real row)) (combine_rows z' rows' zero)
  | _, _ => zero
  end.

(** The ellipsoid ||theta - center||_V <= radius with whitener^T whitener = V^-1: theta = center + whitener^T z for some
    z no longer than the radius. *)
Definition holds (theta : list R) (f : fact) : Prop :=
  match f with
  | Linear normal level => real level <= dot theta (map real normal)
  | Ball radius => 0 <= real radius /\ dot theta theta <= real radius * real radius
  | Ellipsoid center whitener radius =>
      0 <= real radius /\
      exists z, length z = length whitener /\ dot z z <= real radius * real radius /\
      theta = add (map real center) (combine_rows z whitener (map (fun _ => 0) center))
  | Box lowest highest => Forall (fun t => real lowest <= t <= real highest) theta
  end.

(** ** Statement: what is accepted is true, for every theta that satisfies the facts. *)

Definition accepted_proofs_are_true_statement : Prop :=
  forall root quotient asked granted p theta v,
  check root quotient asked granted p = true ->
  value p = Some v ->
  length theta = length (question p) ->
  Forall (holds theta) (match granted with Some known => known | None => facts_of p end) ->
  real v <= dot theta (map real (question p)).

Definition the_question_asked_statement : Prop :=
  forall root quotient q granted p, check root quotient (Some q) granted p = true -> question p = q.

(** ** Proofs *)

Lemma unit_positive : 0 < IZR unit.
Proof. apply IZR_lt. reflexivity. Qed.

Lemma same_true x y : same x y = true -> x = y.
Proof.
  revert y. induction x as [|a x IH]; intros [|b y] H; simpl in H; try discriminate; [reflexivity|].
  apply andb_true_iff in H. destruct H as [Ha H]. apply Z.eqb_eq in Ha. rewrite Ha, (IH y H). reflexivity.
Qed.

Lemma all_same_true x y : all_same x y = true -> x = y.
Proof.
  revert y. induction x as [|a x IH]; intros [|b y] H; simpl in H; try discriminate; [reflexivity|].
  apply andb_true_iff in H. destruct H as [Ha H]. rewrite (same_true _ _ Ha), (IH y H). reflexivity.
Qed.

Lemma same_length_true {A B} (x : list A) (y : list B) : same_length x y = true -> length x = length y.
Proof. apply Nat.eqb_eq. Qed.

(** In whole numbers: theta counted in units. *)
Lemma dot_real theta x : IZR unit * dot theta (map real x) = dot theta (map IZR x).
Proof.
  pose proof unit_positive. revert theta. induction x as [|a x IH]; intros [|t theta]; simpl; try ring.
  rewrite <- IH. unfold real. field. lra.
Qed.

Lemma zdot_real x y : IZR (zdot x y) = dot (map IZR x) (map IZR y).
Proof.
  revert y. induction x as [|a x IH]; intros [|b y]; simpl; try reflexivity. rewrite plus_IZR, mult_IZR, IH.
  reflexivity.
Qed.

Lemma minus_real theta x y :
  length x = length y -> dot theta (map IZR (minus x y)) = dot theta (map IZR x) - dot theta (map IZR y).
Proof.
  revert theta y. induction x as [|a x IH]; intros [|t theta] [|b y] H; simpl in *; try discriminate; try ring.
  rewrite minus_IZR, IH by congruence. ring.
Qed.

Lemma minus_length x y : length x = length y -> length (minus x y) = length x.
Proof. revert y. induction x as [|a x IH]; intros [|b y] H; simpl in *; try discriminate; auto. Qed.

Lemma root_above_true root s r : root_above root s = Some r -> (0 <= r)%Z /\ (s <= r * r)%Z.
Proof.
  unfold root_above. destruct ((0 <=? root s + 1) && (s <=? (root s + 1) * (root s + 1)))%Z eqn:E; [|discriminate].
  intros [= <-]. apply andb_true_iff in E. destruct E as [E1 E2]. split; [apply Z.leb_le, E1 | apply Z.leb_le, E2].
Qed.

Lemma abs_real z : IZR (Z.abs z) = Rabs (IZR z).
Proof. symmetry. apply Rabs_Zabs. Qed.

(** A box: every entry at its worse end. *)
Lemma box_true theta lowest highest x :
  holds theta (Box lowest highest) -> length theta = length x ->
  IZR (fold_right (fun entry sum => entry * (if entry <? 0 then highest else lowest) + sum)%Z 0%Z x)
  <= IZR unit * dot theta (map IZR x).
Proof.
  simpl. pose proof unit_positive as Hu. revert theta. induction x as [|a x IH]; intros [|t theta] Hbox Hl; simpl in *;
    try discriminate; [lra|].
  inversion Hbox as [|? ? [Hlo Hhi] Hbox']; subst. rewrite plus_IZR, mult_IZR.
  specialize (IH theta Hbox' ltac:(congruence)).
  assert (Hlo' : IZR lowest <= IZR unit * t).
  { apply Rle_trans with (IZR unit * real lowest); [right; unfold real; field; lra | apply Rmult_le_compat_l; lra]. }
  assert (Hhi' : IZR unit * t <= IZR highest).
  { apply Rle_trans with (IZR unit * real highest); [apply Rmult_le_compat_l; lra | right; unfold real; field; lra]. }
  replace (IZR unit * (t * IZR a + dot theta (map IZR x)))
    with (IZR a * (IZR unit * t) + IZR unit * dot theta (map IZR x))
    by ring.
  apply Rplus_le_compat; [|exact IH]. destruct (Z.ltb_spec a 0) as [Ha|Ha].
  - apply IZR_lt in Ha. apply Rmult_le_compat_neg_l; lra.
  - apply IZR_le in Ha. apply Rmult_le_compat_l; lra.
Qed.

(** Of a vector no longer than the radius, the inner product with x is at least - radius ||x||. *)
Lemma spread_true (radius r : Z) (z widths : list R) :
  length z = length widths -> 0 <= real radius -> dot z z <= real radius * real radius ->
  0 <= IZR r -> dot widths widths <= IZR r * IZR r ->
  - (IZR (Z.abs radius) * IZR r) <= IZR unit * dot z widths.
Proof.
  intros Hl Hrad Hz Hr Hw. pose proof unit_positive as Hu.
  assert (Habs : IZR (Z.abs radius) = IZR unit * real radius).
  { assert (0 <= IZR radius).
    { replace (IZR radius) with (IZR unit * real radius) by (unfold real; field; lra). apply Rmult_le_pos; lra. }
    rewrite abs_real, Rabs_right by lra. unfold real. field. lra. }
  rewrite Habs. destruct (cauchy_schwarz z widths (real radius) (IZR r)) as [H _]; try assumption.
  replace (- (IZR unit * real radius * IZR r)) with (IZR unit * - (real radius * IZR r)) by ring.
  apply Rmult_le_compat_l; lra.
Qed.

Lemma combine_rows_length z rows zero :
  Forall (fun row => length row = length zero) rows -> length (combine_rows z rows zero) = length zero.
Proof.
  revert rows. induction z as [|a z IH]; intros [|row rows] H; simpl; try reflexivity.
  inversion H; subst. rewrite add_length; rewrite scale_length, map_length; [assumption|].
  rewrite IH by assumption. assumption.
Qed.

Lemma dot_zeros {X} (l : list X) x : dot (map (fun _ => 0) l) x = 0.
Proof. revert x. induction l as [|a l IH]; intros [|b x]; simpl; try reflexivity. rewrite IH. ring. Qed.

(** <whitener^T z, x> = <z, whitener x>. *)
Lemma dot_combine_rows z rows {X} (like : list X) x :
  length z = length rows -> Forall (fun row => length row = length like) rows ->
  IZR unit * dot (combine_rows z rows (map (fun _ => 0) like)) (map IZR x)
  = dot z (map (fun row => IZR (zdot row x)) rows).
Proof.
  pose proof unit_positive as Hu. revert z. induction rows as [|row rows IH]; intros [|a z] Hl Hrows; simpl in *;
    try discriminate.
  - rewrite dot_zeros. ring.
  - inversion Hrows; subst. rewrite dot_add_l.
    + rewrite dot_scale_l, Rmult_plus_distr_l, IH by (congruence || assumption).
      rewrite (dot_comm (map real row)), <- Rmult_assoc, (Rmult_comm (IZR unit) a), Rmult_assoc, dot_real.
      rewrite zdot_real, (dot_comm (map IZR x)). reflexivity.
    + rewrite scale_length, map_length, combine_rows_length; rewrite map_length; [congruence|].
      eapply Forall_impl; [|eassumption]. simpl. congruence.
Qed.

(** Rounding the widths down loses less than 1 of each. *)
Lemma widths_true (exact : list Z) (r : Z) :
  (0 <= r)%Z -> (zdot (map (fun m => m / unit) exact) (map (fun m => m / unit) exact) <= r * r)%Z ->
  dot (map (fun m => IZR m / IZR unit) exact) (map (fun m => IZR m / IZR unit) exact)
  <= IZR (r + Z.of_nat (length exact)) * IZR (r + Z.of_nat (length exact)).
Proof.
  intros Hr Hw. pose proof unit_positive as Hu.
  set (down := map (fun m => IZR (m / unit)) exact).
  set (lost := map (fun m => IZR m / IZR unit - IZR (m / unit)) exact).
  assert (Hsum : map (fun m => IZR m / IZR unit) exact = add down lost).
  { unfold down, lost. clear. induction exact as [|m exact IH]; simpl; [reflexivity|]. rewrite IH. f_equal. ring. }
  assert (Hdown : dot down down <= IZR r * IZR r).
  { unfold down. rewrite <- mult_IZR. apply IZR_le in Hw. rewrite zdot_real in Hw. rewrite !map_map in Hw. exact Hw. }
  assert (Hlost : dot lost lost <= INR (length exact) * INR (length exact)).
  { assert (H1 : dot lost lost <= INR (length exact)).
    { unfold lost. clear - Hu. induction exact as [|m exact IH]; [simpl; lra|]. cbn [map dot length]. rewrite S_INR.
      assert (Hm : 0 <= IZR m / IZR unit - IZR (m / unit) <= 1).
      { assert (Hup : (0 < unit)%Z) by reflexivity.
        pose proof (Z.mul_div_le m unit Hup) as H0. pose proof (Z.mul_succ_div_gt m unit Hup) as H1.
        apply IZR_le in H0. apply IZR_lt in H1. rewrite mult_IZR in H0, H1. rewrite succ_IZR in H1.
        replace (IZR m / IZR unit - IZR (m / unit)) with ((IZR m - IZR unit * IZR (m / unit)) / IZR unit) by (field;
          lra).
        split.
        - apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; exact Hu].
        - apply Rmult_le_reg_r with (IZR unit); [exact Hu|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
      assert ((IZR m / IZR unit - IZR (m / unit)) * (IZR m / IZR unit - IZR (m / unit)) <= 1 * 1)
        by (apply Rmult_le_compat; lra). lra. }
    eapply Rle_trans; [exact H1|]. destruct (length exact) as [|n]; [simpl; lra|].
    rewrite <- (Rmult_1_l (INR (S n))) at 1. apply Rmult_le_compat_r; [apply pos_INR|]. rewrite S_INR.
    pose proof (pos_INR n). lra. }
  rewrite Hsum. rewrite plus_IZR, <- INR_IZR_INZ.
  apply triangle; try assumption.
  - unfold down, lost. rewrite !map_length. reflexivity.
  - apply IZR_le. exact Hr.
  - apply pos_INR.
Qed.

Lemma least_true root f theta x bound :
  least root f x = Some bound -> holds theta f -> length theta = length x ->
  IZR bound <= IZR unit * dot theta (map IZR x).
Proof.
  intros Hleast Hf Hl. pose proof unit_positive as Hu.
  destruct f as [normal level | radius | center whitener radius | lowest highest]; simpl in Hleast.
  - discriminate.
  - destruct (root_above root (zdot x x)) as [r|] eqn:Hroot; [|discriminate]. injection Hleast as <-.
    apply root_above_true in Hroot. destruct Hroot as [Hr Hs]. destruct Hf as [Hrad Hball].
    rewrite opp_IZR, mult_IZR. apply spread_true; try assumption.
    + rewrite map_length. exact Hl.
    + apply IZR_le. exact Hr.
    + rewrite <- zdot_real, <- mult_IZR. apply IZR_le. exact Hs.
  - destruct (same_length center x && same_length whitener x && forallb (fun row => same_length row x) whitener
      && lower_triangular 0 whitener)%bool eqn:Hshape; [|discriminate].
    apply andb_true_iff in Hshape. destruct Hshape as [Hshape _].
    apply andb_true_iff in Hshape. destruct Hshape as [Hshape Hrows].
    apply andb_true_iff in Hshape. destruct Hshape as [Hc Hw].
    apply same_length_true in Hc. apply same_length_true in Hw.
    assert (Hrows' : Forall (fun row => length row = length center) whitener).
    { apply Forall_forall. intros row Hin. rewrite forallb_forall in Hrows. specialize (Hrows row Hin).
      apply same_length_true in Hrows. congruence. }
    set (widths := map (fun row => zdot row x / unit)%Z whitener) in *.
    destruct (root_above root (zdot widths widths)) as [r|] eqn:Hroot; [|discriminate]. injection Hleast as <-.
    apply root_above_true in Hroot. destruct Hroot as [Hr Hs].
    destruct Hf as [Hrad [z [Hz [Hzz ->]]]].
    rewrite dot_add_l by (rewrite combine_rows_length; rewrite ?map_length; [reflexivity | assumption]).
    rewrite Rmult_plus_distr_l, dot_combine_rows by assumption.
    rewrite (dot_comm (map real center)), dot_real, minus_IZR, mult_IZR, zdot_real, (dot_comm (map IZR x)).
    assert (Hexact : map (fun row => IZR (zdot row x)) whitener
      = scale (IZR unit) (map (fun m => IZR m / IZR unit) (map (fun row => zdot row x) whitener))).
    { unfold scale. rewrite !map_map. apply map_ext. intro row. field. lra. }
    rewrite Hexact, dot_scale_r.
    assert (Hspread : - (IZR (Z.abs radius) * IZR (r + Z.of_nat (length x)))
      <= IZR unit * dot z (map (fun m => IZR m / IZR unit) (map (fun row => zdot row x) whitener))).
    { apply spread_true; try assumption.
      - rewrite !map_length. exact Hz.
      - apply IZR_le. lia.
      - replace (length x) with (length (map (fun row => zdot row x) whitener)) by (rewrite map_length; exact Hw).
        apply widths_true; [exact Hr|]. unfold widths in Hs. rewrite map_map. exact Hs. }
    lra.
  - injection Hleast as <-. apply box_true; assumption.
Qed.

Lemma bound_true root quotient f theta x bound covered :
  bound_of root quotient f x = Some (bound, covered) -> holds theta f -> length theta = length x ->
  length covered = length x /\ IZR bound <= IZR unit * dot theta (map IZR covered).
Proof.
  intros Hbound Hf Hl. pose proof unit_positive as Hu.
  assert (Hother : match least root f x with Some b => Some (b, x) | None => None end = Some (bound, covered) ->
    length covered = length x /\ IZR bound <= IZR unit * dot theta (map IZR covered)).
  { destruct (least root f x) as [b|] eqn:E; [|discriminate]. intros [= <- <-]. split; [reflexivity|].
    apply (least_true root f); assumption. }
  destruct f as [normal level | | |]; try (apply Hother; exact Hbound). clear Hother.
  unfold bound_of in Hbound. cbv zeta in Hbound.
  destruct (same_length normal x) eqn:Hn; [|discriminate]. apply same_length_true in Hn.
  set (weight := if ((0 <? zdot x normal) && (zdot x normal <? zdot normal normal * widest))%Z
                 then quotient (zdot x normal) (zdot normal normal) else 0%Z) in Hbound.
  set (part := map (fun entry => (weight * entry / unit)%Z) normal) in Hbound.
  destruct ((0 <=? weight)%Z && same (map (Z.mul unit) part) (map (Z.mul weight) normal)) eqn:E; [|discriminate].
  injection Hbound as <- <-. apply andb_true_iff in E. destruct E as [Hw E]. apply Z.leb_le in Hw. apply same_true in E.
  split; [unfold part; rewrite map_length; exact Hn|].
  assert (Hpart : IZR unit * dot theta (map IZR part) = IZR weight * dot theta (map IZR normal)).
  { rewrite <- !dot_scale_r. f_equal. unfold scale. rewrite !map_map.
    apply (f_equal (map IZR)) in E. rewrite !map_map in E.
    erewrite map_ext; [|intro; rewrite <- mult_IZR; reflexivity]. rewrite E.
    apply map_ext. intro. apply mult_IZR. }
  rewrite Hpart, mult_IZR. apply Rmult_le_compat_l; [apply IZR_le; exact Hw|].
  simpl in Hf. rewrite <- dot_real.
  apply Rle_trans with (IZR unit * real level); [right; unfold real; field; lra | apply Rmult_le_compat_l; lra].
Qed.

Lemma add_up_true root quotient ps theta : forall proved remains proved' remains',
  add_up root quotient ps proved remains = Some (proved', remains') ->
  Forall (holds theta) (map piece_fact ps) -> length theta = length remains ->
  length remains' = length remains /\
  IZR proved' - IZR proved <= IZR unit * (dot theta (map IZR remains) - dot theta (map IZR remains')).
Proof.
  induction ps as [|p ps IH]; intros proved remains proved' remains' H Hfacts Hl; simpl in H.
  - injection H as <- <-. split; [reflexivity | lra].
  - inversion Hfacts as [|? ? Hf Hfacts']; subst.
    destruct (same_length (piece_vector p) remains) eqn:E; [|discriminate]. apply same_length_true in E.
    destruct (bound_of root quotient (piece_fact p) (piece_vector p)) as [[bound covered]|] eqn:Hbound; [|discriminate].
    destruct (piece_bound p * unit <=? bound)%Z; [|discriminate].
    destruct (bound_true _ _ _ theta _ _ _ Hbound Hf) as [Hc Hb]; [congruence|].
    assert (Hlen : length (minus remains covered) = length remains) by (apply minus_length; congruence).
    destruct (IH _ _ _ _ H Hfacts') as [H1 H2]; [congruence|].
    split; [congruence|]. rewrite minus_real in H2 by congruence. rewrite plus_IZR in H2. lra.
Qed.

Lemma zeros_true theta x : forallb (Z.eqb 0) x = true -> dot theta (map IZR x) = 0.
Proof.
  revert theta. induction x as [|a x IH]; intros [|t theta] H; simpl in *; try reflexivity.
  apply andb_true_iff in H. destruct H as [Ha H]. destruct a; try discriminate. rewrite IH by exact H. ring.
Qed.

Lemma proved_true root quotient p theta proved :
  proved_by root quotient p = Some proved -> Forall (holds theta) (facts_of p) -> length theta = length (question p) ->
  IZR proved <= IZR unit * dot theta (map IZR (question p)).
Proof.
  unfold proved_by, facts_of. intros H Hfacts Hl. apply Forall_app in Hfacts. destruct Hfacts as [Hpieces Hrest].
  destruct (add_up root quotient (pieces p) 0 (question p)) as [[sum remains]|] eqn:E; [|discriminate].
  destruct (add_up_true _ _ _ theta _ _ _ _ E Hpieces Hl) as [Hlen Hsum].
  destruct (forallb (Z.eqb 0) remains) eqn:Hzero.
  - injection H as <-. rewrite (zeros_true theta _ Hzero) in Hsum. lra.
  - destruct (rest p) as [f|]; [|discriminate]. destruct (least root f remains) as [bound|] eqn:Hleast; [|discriminate].
    injection H as <-. inversion Hrest as [|? ? Hf _]; subst.
    pose proof (least_true root f theta remains bound Hleast Hf ltac:(congruence)). rewrite plus_IZR. lra.
Qed.

(** A larger radius and a lower level say less. *)
Lemma grants_true theta known f : grants known f = true -> holds theta known -> holds theta f.
Proof.
  pose proof unit_positive as Hu.
  assert (Hmono : forall a b : Z, (a <=? b)%Z = true -> real a <= real b).
  { intros a b H. apply Z.leb_le, IZR_le in H. unfold real, Rdiv. apply Rmult_le_compat_r; [|exact H].
    left. apply Rinv_0_lt_compat. exact Hu. }
  assert (Hsquare : forall a b : Z, 0 <= real a -> real a <= real b -> real a * real a <= real b * real b)
    by (intros; apply Rmult_le_compat; lra).
  destruct known as [n l | r | c w r | lo hi], f as [n' l' | r' | c' w' r' | lo' hi']; simpl; intros H Hk;
    try discriminate.
  - apply andb_true_iff in H. destruct H as [Hn H]. apply same_true in Hn. subst. specialize (Hmono _ _ H). lra.
  - specialize (Hmono _ _ H). destruct Hk as [H0 H1]. specialize (Hsquare _ _ H0 Hmono). lra.
  - apply andb_true_iff in H. destruct H as [H Hr]. apply andb_true_iff in H. destruct H as [Hc Hw].
    apply same_true in Hc. apply all_same_true in Hw. subst. specialize (Hmono _ _ Hr).
    destruct Hk as [H0 [z [H1 [H2 H3]]]].
    specialize (Hsquare _ _ H0 Hmono). split; [lra|]. exists z. repeat split; try assumption. lra.
  - apply andb_true_iff in H. destruct H as [Hlo Hhi]. apply Z.eqb_eq in Hlo. apply Z.eqb_eq in Hhi. subst. exact Hk.
Qed.

Theorem accepted_proofs_are_true : accepted_proofs_are_true_statement.
Proof.
  intros root quotient asked granted p theta v Hcheck Hv Hl Hfacts. pose proof unit_positive as Hu.
  unfold check in Hcheck. rewrite Hv in Hcheck. apply andb_true_iff in Hcheck. destruct Hcheck as [_ Hcheck].
  apply andb_true_iff in Hcheck. destruct Hcheck as [Hgranted Hproved].
  destruct (proved_by root quotient p) as [proved|] eqn:E; [|discriminate]. apply Z.leb_le, IZR_le in Hproved.
  assert (Hall : Forall (holds theta) (facts_of p)).
  { destruct granted as [known|]; [|exact Hfacts]. rewrite forallb_forall in Hgranted. rewrite Forall_forall in *.
    intros f Hin. specialize (Hgranted f Hin). simpl in Hgranted. apply existsb_exists in Hgranted.
    destruct Hgranted as [k [Hk Hg]]. apply (grants_true theta k f Hg). apply Hfacts. exact Hk. }
  pose proof (proved_true _ _ _ theta _ E Hall Hl) as H. rewrite mult_IZR in Hproved. rewrite <- dot_real in H.
  apply Rmult_le_reg_l with (IZR unit * IZR unit); [apply Rmult_lt_0_compat; exact Hu|].
  replace (IZR unit * IZR unit * real v) with (IZR v * IZR unit) by (unfold real; field; lra). lra.
Qed.

Theorem the_question_asked : the_question_asked_statement.
Proof.
  intros root quotient q granted p H. unfold check in H. apply andb_true_iff in H. destruct H as [H _].
  symmetry. apply same_true. exact H.
Qed.
