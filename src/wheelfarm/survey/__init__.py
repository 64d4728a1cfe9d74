"""Does this source tree link libtorch? Evidence from its build files, which are never run."""

from wheelfarm.survey.model import SURVEY_VERDICTS, Evidence, SurveyResult, SurveyVerdict
from wheelfarm.survey.survey import survey_tree

__all__ = ["SURVEY_VERDICTS", "Evidence", "SurveyResult", "SurveyVerdict", "survey_tree"]
