<?php
// What CodeRunner's own jobrunner makes of a grader's output. Arguments: its classes, the output.
namespace qtype_coderunner { class constants {} }
namespace {
define('MOODLE_INTERNAL', true);
function get_string($name, $component = '', $about = null) { return $name . json_encode($about); }
#[AllowDynamicProperties] class html_table {}
class qtype_coderunner_sandbox {
    const RESULT_SUCCESS = 15;
    static function result_string($result) { return (string) $result; }
}
[, $classes, $output] = $argv;
$CFG = (object) ['dirroot' => $classes];
foreach (['testing_outcome', 'combinator_grader_outcome', 'jobrunner'] as $name) {
    require("$classes/$name.php");
}
$run = (object) ['result' => 15, 'output' => file_get_contents($output), 'cmpinfo' => '', 'stderr' => ''];
$method = new ReflectionMethod('qtype_coderunner_jobrunner', 'do_combinator_grading');
$runner = (new ReflectionClass('qtype_coderunner_jobrunner'))->newInstanceWithoutConstructor();
$outcome = $method->invoke($runner, $run, false);
echo json_encode([
    'share' => $outcome->status == $outcome::STATUS_VALID ? (float) $outcome->actualmark : null,
    'rows' => count($outcome->testresults ?? []) - 1,
    'says' => (string) $outcome->errormessage,
]);
}
