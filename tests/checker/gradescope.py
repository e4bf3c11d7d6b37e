"""The keys, types and ranges of results.json, by Gradescope's specification."""

VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
TEST = {
    "score": {"type": "number", "minimum": 0},
    "max_score": {"type": "number", "minimum": 0},
    "status": {"enum": ["passed", "failed"]},
    "name": {"type": "string"},
    "name_format": FORMAT,
    "number": {"type": "string"},
    "output": {"type": "string"},
    "output_format": FORMAT,
    "tags": {"type": "array", "items": {"type": "string"}},
    "visibility": VISIBILITY,
    "extra_data": {"type": "object"},
}
RESULTS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "score": {"type": "number", "minimum": 0},
        "execution_time": {"type": "number", "minimum": 0},
        "output": {"type": "string"},
        "output_format": FORMAT,
        "test_output_format": FORMAT,
        "test_name_format": FORMAT,
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": False, "properties": TEST},
        },
        "leaderboard": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "value"],
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": ["number", "string"]},
                    "order": {"enum": ["asc", "desc"]},
                },
            },
        },
    },
    "anyOf": [{"required": ["score"]}, {"required": ["tests"]}],
}
