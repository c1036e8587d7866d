def render(document):
    return ""
