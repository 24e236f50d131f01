# util
