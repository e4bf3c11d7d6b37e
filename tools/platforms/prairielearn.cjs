// What PrairieLearn's own makeGradingResult makes of results. Arguments: its file, the results.
const fs = require("fs"), ts = require("typescript");
const [source, output] = process.argv.slice(2);
const text = fs.readFileSync(source, "utf8");
const functions = text.slice(text.indexOf("export function makeGradingResult"));
const options = { compilerOptions: { module: "CommonJS", target: "ES2022" } };
const code = ts.transpileModule(functions, options).outputText;
const mapValues = (from, change) =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, change(value)]));
const module_ = { exports: {} };
new Function("exports", "mapValues", code)(module_.exports, mapValues);
const results = JSON.parse(fs.readFileSync(output, "utf8"));
const { grading } = module_.exports.makeGradingResult("1", { succeeded: true, results });
const succeeded = grading.feedback?.succeeded === true;
console.log(JSON.stringify({
  share: succeeded ? grading.score : null,
  rows: grading.feedback?.results?.tests?.length ?? 0,
  says: grading.feedback?.message ?? "",
}));
