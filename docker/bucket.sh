#!/bin/sh
# Makes what a fresh MinIO lacks: the bucket, and a user who may list, read, write and delete in it alone. May run again.
set -euo pipefail # of busybox, whose shell has it
bucket=${1:?usage: bucket.sh BUCKET}
files=${TMPDIR:-/tmp}
export MC_CONFIG_DIR=$files/mc
cat >"$files/policy.json" <<END
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Action": ["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
      "Resource": ["arn:aws:s3:::$bucket"]
    },
    {
      "Effect": "Allow",
      "Action": [
        "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"
      ],
      "Resource": ["arn:aws:s3:::$bucket/*"]
    }
  ]
}
END
mc alias set local http://minio:9000 "$MINIO_ROOT_USER" "$MINIO_ROOT_PASSWORD" >/dev/null
mc mb --ignore-existing "local/$bucket"
mc admin user add local twinset "$BUCKET_PASSWORD"
mc admin policy create local twinset "$files/policy.json"
case $(mc admin user info local twinset) in
    *"PolicyName: twinset"*) ;; # to attach it again is an error
    *) mc admin policy attach local twinset --user twinset ;;
esac
