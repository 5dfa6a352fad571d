"""The native flow over HTTP: accept a quote, wait for the answer, read a job.

`service` composes admission, dispatch and jobs; `view` is what a buyer is shown of a job;
`endpoints` holds `POST /v1/requests` (thin route) and `GET /v1/jobs/{id}`; `listing` holds
`GET /v1/jobs`.
"""
