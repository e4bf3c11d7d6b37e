<?php
// What VPL's own functions find in an output. Arguments: its two files, the output.
[, $submission, $library, $output] = $argv;
function part($file, $pattern) {
    if (!preg_match($pattern, file_get_contents($file), $found)) { exit("not found: $pattern"); }
    return $found[0];
}
eval(part($library, '/^function vpl_detect_newline\(.*?^}/ms'));
$constants = part($submission, "/^    const GRADETAG.*?ENDCOMMENTTAG = '[^']*';/ms");
$grade = part($submission, '/^    public static function find_proposedgrade\(.*?^    }/ms');
$comment = part($submission, '/^    public static function find_proposedcomment\(.*?^    }/ms');
eval("class found { $constants\n$grade\n$comment }");
$text = file_get_contents($output);
$mark = found::find_proposedgrade($text);
$comment = found::find_proposedcomment($text);
// All that stands between marks must be there, whatever is written in it.
$whole = $comment === preg_replace('/^(<\|--|--\|>|Grade :=>> [\d.]+)\n/m', '', $text);
$titles = $whole ? preg_match_all('/^-/m', $comment) : -1;
echo json_encode(['share' => is_numeric($mark) ? $mark / 100 : null, 'rows' => $titles, 'says' => '']);
