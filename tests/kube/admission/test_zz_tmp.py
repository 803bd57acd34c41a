import pytest
from tests.kube.admission.test_real_webhooks import *
from tests.kube.admission.test_real_webhooks import client, queues
@pytest.mark.parametrize("n", range(25))
async def test_loop(client, queues, namespace, n):
    await TestCertificates().test_no_request_fails_while_authority_and_certificate_are_exchanged(client, queues, namespace)
