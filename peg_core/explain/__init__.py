"""Why a pair has the score that it has."""
