# Requests to Twilio and to a phone with SMS Gateway against independent mocks of their published descriptions.
prism() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return
    against_mock twilio/twilio_api_v2010.trimmed.json DIALARR_PRISM_URL prism || status=$?
    against_mock smsgate/openapi.json DIALARR_SMSGATE_URL smsgate || status=$?
    return "$status"
)
