def louder(text):
    return text.upper()
