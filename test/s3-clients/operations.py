"""Tries the operations of S3 with boto3 and prints, as JSON, what each is answered: "yes", or the code of the refusal.
Environment: ENDPOINT, AUTHORITY (PEM file; empty for plain HTTP), KEY, SECRET, BUCKET (begins so)."""
import json
import os
import ssl
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT, BUCKET = os.environ["ENDPOINT"], os.environ["BUCKET"]
AUTHORITY = os.environ.get("AUTHORITY") or None
PART = 5 * 1024 * 1024


def client(**more):
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        verify=AUTHORITY,
        region_name="us-east-1",
        aws_access_key_id=os.environ["KEY"],
        aws_secret_access_key=os.environ["SECRET"],
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, signature_version="s3v4", **more),
    )


s3 = client()
here = {"Bucket": BUCKET}
answers = {}


def tried(name):
    """The function does it, and fails where the answer is not what it should be."""

    def run(work):
        try:
            work()
            answers[name] = "yes"
        except ClientError as error:
            answers[name] = error.response["Error"]["Code"]
        except AssertionError:
            answers[name] = "wrong"

    return run


def text(**at):
    return s3.get_object(**here, **at)["Body"].read()


def fetch(url):
    context = ssl.create_default_context(cafile=AUTHORITY) if AUTHORITY else None
    with urllib.request.urlopen(url, context=context) as answer:
        return answer.read()


@tried("CreateBucket")
def _():
    s3.create_bucket(**here)


@tried("HeadBucket, ListBuckets")
def _():
    s3.head_bucket(**here)
    assert BUCKET in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]


@tried("PutObject, GetObject, HeadObject")
def _():
    s3.put_object(**here, Key="a b/ü+&.txt", Body=b"hello", Metadata={"colour": "blue"}, ContentType="text/plain")
    assert text(Key="a b/ü+&.txt") == b"hello"
    head = s3.head_object(**here, Key="a b/ü+&.txt")
    assert head["Metadata"] == {"colour": "blue"} and head["ContentLength"] == 5


@tried("GetObject with a range")
def _():
    assert text(Key="a b/ü+&.txt", Range="bytes=1-2") == b"el"


def only_once(request, **_more):
    request.headers["If-None-Match"] = "*"


@tried("PutObject with If-None-Match")
def _():
    s3.put_object(**here, Key="once", Body=b"1")
    try:
        s3.meta.events.register("before-sign.s3.PutObject", only_once)
        s3.put_object(**here, Key="once", Body=b"2")
        raise AssertionError
    except ClientError as error:
        assert error.response["Error"]["Code"] == "PreconditionFailed"
    finally:
        s3.meta.events.unregister("before-sign.s3.PutObject", only_once)


@tried("ListObjectsV2 with prefix, delimiter and pages")
def _():
    for name in ["d/1", "d/2", "d/3", "e/1"]:
        s3.put_object(**here, Key=name, Body=b"")
    pages = s3.get_paginator("list_objects_v2").paginate(**here, Prefix="d/", PaginationConfig={"PageSize": 2})
    assert [item["Key"] for page in pages for item in page.get("Contents", [])] == ["d/1", "d/2", "d/3"]
    folders = s3.list_objects_v2(**here, Delimiter="/")["CommonPrefixes"]
    assert [folder["Prefix"] for folder in folders] == ["a b/", "d/", "e/"]


@tried("ListObjects")
def _():
    assert len(s3.list_objects(**here, Prefix="d/")["Contents"]) == 3


@tried("CopyObject")
def _():
    s3.copy_object(**here, Key="copy", CopySource={**here, "Key": "a b/ü+&.txt"})
    assert text(Key="copy") == b"hello"


@tried("DeleteObject, DeleteObjects")
def _():
    s3.delete_object(**here, Key="copy")
    s3.delete_objects(**here, Delete={"Objects": [{"Key": "e/1"}, {"Key": "once"}]})
    assert s3.list_objects_v2(**here)["KeyCount"] == 4


@tried("multipart uploads, UploadPartCopy")
def _():
    at = {**here, "Key": "large"}
    upload = {**at, "UploadId": s3.create_multipart_upload(**at)["UploadId"]}
    s3.put_object(**here, Key="part", Body=b"b" * PART)
    one = s3.upload_part(**upload, PartNumber=1, Body=b"a" * PART)["ETag"]
    two = s3.upload_part_copy(**upload, PartNumber=2, CopySource={**here, "Key": "part"})["CopyPartResult"]["ETag"]
    assert len(s3.list_parts(**upload)["Parts"]) == 2
    parts = [{"PartNumber": 1, "ETag": one}, {"PartNumber": 2, "ETag": two}]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    assert text(Key="large", Range=f"bytes={PART - 1}-{PART}") == b"ab"
    left = {**at, "UploadId": s3.create_multipart_upload(**at)["UploadId"]}
    assert len(s3.list_multipart_uploads(**here)["Uploads"]) == 1
    s3.abort_multipart_upload(**left)


@tried("presigned URLs")
def _():
    url = s3.generate_presigned_url("get_object", Params={**here, "Key": "a b/ü+&.txt"}, ExpiresIn=60)
    assert fetch(url) == b"hello"


@tried("tags of objects")
def _():
    tags = [{"Key": "a", "Value": "b"}]
    s3.put_object_tagging(**here, Key="d/1", Tagging={"TagSet": tags})
    assert s3.get_object_tagging(**here, Key="d/1")["TagSet"] == tags
    s3.delete_object_tagging(**here, Key="d/1")


@tried("tags of buckets")
def _():
    tags = [{"Key": "a", "Value": "b"}]
    s3.put_bucket_tagging(**here, Tagging={"TagSet": tags})
    assert s3.get_bucket_tagging(**here)["TagSet"] == tags


@tried("CORS rules")
def _():
    rules = [{"AllowedMethods": ["GET"], "AllowedOrigins": ["https://a.example"]}]
    s3.put_bucket_cors(**here, CORSConfiguration={"CORSRules": rules})
    assert s3.get_bucket_cors(**here)["CORSRules"][0]["AllowedOrigins"] == ["https://a.example"]


@tried("versions of objects")
def _():
    own = {"Bucket": f"{BUCKET}v"}
    s3.create_bucket(**own)
    s3.put_bucket_versioning(**own, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(**own, Key="x", Body=b"1")["VersionId"]
    s3.put_object(**own, Key="x", Body=b"2")
    assert s3.get_object(**own, Key="x", VersionId=first)["Body"].read() == b"1"
    assert len(s3.list_object_versions(**own)["Versions"]) == 2


@tried("object lock")
def _():
    own = {"Bucket": f"{BUCKET}l"}
    s3.create_bucket(**own, ObjectLockEnabledForBucket=True)
    s3.put_object(**own, Key="x", Body=b"1")
    s3.put_object_legal_hold(**own, Key="x", LegalHold={"Status": "ON"})
    version = s3.list_object_versions(**own)["Versions"][0]["VersionId"]
    try:
        s3.delete_object(**own, Key="x", VersionId=version)
        raise AssertionError
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDenied", error.response["Error"]["Code"]
    s3.put_object_legal_hold(**own, Key="x", LegalHold={"Status": "OFF"})


@tried("lifecycle rules")
def _():
    rule = {"ID": "a", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(**here, LifecycleConfiguration={"Rules": [rule]})
    assert len(s3.get_bucket_lifecycle_configuration(**here)["Rules"]) == 1


@tried("bucket policies")
def _():
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"}
    s3.put_bucket_policy(**here, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    s3.delete_bucket_policy(**here)


@tried("ACLs other than private")
def _():
    s3.put_object_acl(**here, Key="d/1", ACL="public-read")


@tried("websites")
def _():
    s3.put_bucket_website(**here, WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}})


@tried("encryption with the key of the client")
def _():
    if not AUTHORITY:
        raise ClientError({"Error": {"Code": "InvalidRequest"}}, "x")
    key = {"SSECustomerKey": "k" * 32, "SSECustomerAlgorithm": "AES256"}
    s3.put_object(**here, Key="sealed", Body=b"x", **key)
    assert s3.get_object(**here, Key="sealed", **key)["Body"].read() == b"x"
    try:
        text(Key="sealed")
        raise AssertionError
    except ClientError:
        pass


print(json.dumps(answers, indent=1))
