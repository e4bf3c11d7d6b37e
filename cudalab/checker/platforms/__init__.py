"""What courses' platforms need to judge by: Gradescope, GitHub Classroom, check50."""
