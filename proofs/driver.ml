(* Reads proofs, one a line, as proofs/compare.py writes them, and answers each with "accept" or "refuse".

   The verdict is the extracted checker's. What is here only reads numbers, which count in units of 2^-2148; and offers
   roots and quotients, of which the checker trusts neither. A line with a number that is no float is refused. *)

exception Malformed

(* A root, rounded down; a quotient, rounded to the nearest float, ties to even. *)
let root s = if Z.sign s < 0 then Z.zero else Z.sqrt s

let quotient a b =
  let rounded e =
    let top = if e < 0 then Z.shift_left a (-e) else a and bottom = if e > 0 then Z.shift_left b e else b in
    let q, r = Z.div_rem top bottom in
    let twice = Z.compare (Z.shift_left r 1) bottom in
    if twice > 0 || (twice = 0 && Z.is_odd q) then Z.succ q else q
  in
  let guess = Z.numbits a - Z.numbits b - 53 in
  let digits e = Z.numbits (Z.div (if e < 0 then Z.shift_left a (-e) else a) (if e > 0 then Z.shift_left b e else b)) in
  let e = max (if digits guess > 53 then guess + 1 else guess) (-1074) in
  Z.shift_left (rounded e) (e + 2148)

(* ---- reading ---- *)

type line = { tokens : string array; mutable next : int }

let token line =
  if line.next >= Array.length line.tokens then raise Malformed;
  line.next <- line.next + 1;
  line.tokens.(line.next - 1)

let count line = match int_of_string_opt (token line) with Some n when n >= 0 -> n | _ -> raise Malformed

let times n read line =
  let rec go n = if n = 0 then [] else let one = read line in one :: go (n - 1) in
  go n

(* "top/k" is top / 2^k, in hexadecimal. *)
let number line =
  match String.split_on_char '/' (token line) with
  | [ top; k ] ->
      let sign, digits = if top.[0] = '-' then (-1, String.sub top 1 (String.length top - 1)) else (1, top) in
      let units = Z.mul (Z.of_string ("0x" ^ digits)) Checker.unit0 in
      let whole = Z.divexact units (Z.shift_left Z.one (int_of_string k)) in
      if sign < 0 then Z.neg whole else whole
  | _ -> raise Malformed

let many read line = times (count line) read line
let vector = many number

let fact line =
  match token line with
  | "linear" -> let normal = vector line in Checker.Linear (normal, number line)
  | "ball" -> Checker.Ball (number line)
  | "ellipsoid" ->
      let center = vector line in
      let whitener = many vector line in
      Checker.Ellipsoid (center, whitener, number line)
  | "box" -> let low = number line in Checker.Box (low, number line)
  | _ -> raise Malformed

let piece line =
  let piece_fact = fact line in
  let piece_vector = vector line in
  { Checker.piece_fact; piece_vector; piece_bound = number line }

let perhaps read line = match token line with "none" -> None | "some" -> Some (read line) | _ -> raise Malformed

(* ---- verdicts ---- *)

let judge_proof line =
  let asked = perhaps vector line in
  let question = vector line in
  let value = perhaps number line in
  if value = None then Checker.check root quotient asked None { question; pieces = []; value; rest = None }
  else
    let granted = perhaps (many fact) line in
    let pieces = many piece line in
    Checker.check root quotient asked granted { question; pieces; value; rest = perhaps fact line }

let flag line = match token line with "1" -> true | "0" -> false | _ -> raise Malformed

let bank line =
  let is_floor = flag line in
  let is_played = flag line in
  let bank_alpha = number line in
  let bank_low = number line in
  let bank_most = number line in
  let bank_delta = number line in
  let bank_share = number line in
  let log_wealth = vector line in
  let proved_slack = number line in
  let bank_owed = number line in
  let bank_reserve = number line in
  let carried = number line in
  let coin_luck = number line in
  { Checker.is_floor; is_played; bank_alpha; bank_low; bank_most; bank_delta; bank_share; log_wealth; proved_slack;
    bank_owed; bank_reserve; carried; coin_luck }

let judge_guard line =
  let rate line = let weight = number line in (weight, number line) in
  let rates = many rate line in
  Checker.check_guard rates (many bank line)

let judge text =
  let line = { tokens = Array.of_list (String.split_on_char ' ' text); next = 0 } in
  try match token line with "proof" -> judge_proof line | "guard" -> judge_guard line | _ -> raise Malformed
  with Malformed -> false

let () =
  let input = if Array.length Sys.argv > 1 then open_in Sys.argv.(1) else stdin in
  try
    while true do
      print_endline (if judge (input_line input) then "accept" else "refuse")
    done
  with End_of_file -> ()
