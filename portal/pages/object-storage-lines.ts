/** Lines that make usual programs use an object storage. The secret is a variable of the shell: it is in no snippet. */
import type { ObjectStorage } from '../../client/schema.ts'

export interface Line {
  readonly name: string
  readonly text: string
}

type Parts = Pick<ObjectStorage, 'zone' | 'endpoint' | 'access_key_id' | 'bucket_prefix' | 'certificate_authority'>

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Of `aws`, `rclone` and `s3cmd`, each with the authority when the endpoint has a private one. */
export function linesOf(storage: Parts): readonly Line[] {
  const { zone, endpoint, access_key_id: key, bucket_prefix: prefix, certificate_authority: authority } = storage
  const bucket = `${prefix ?? ''}my-bucket`
  const file = `svccloud-${zone}.pem`
  const save = authority === null ? [] : [`cat > ${file} <<'PEM'\n${authority.trim()}\nPEM`]
  const { host } = new URL(endpoint)
  return [
    {
      name: 'aws',
      text: [
        ...save,
        `export AWS_ACCESS_KEY_ID=${quoted(key)} AWS_SECRET_ACCESS_KEY="$SECRET_ACCESS_KEY" AWS_REGION=${quoted(zone)}`,
        `export AWS_ENDPOINT_URL=${quoted(endpoint)}`,
        ...(authority === null ? [] : [`export AWS_CA_BUNDLE="$PWD/${file}"`]),
        `aws s3 mb ${quoted(`s3://${bucket}`)}`,
        `aws s3 ls ${quoted(`s3://${bucket}`)}`,
        `aws s3 presign ${quoted(`s3://${bucket}/file`)} --expires-in 3600`,
      ].join('\n'),
    },
    {
      name: 'rclone',
      text: [
        ...save,
        `rclone config create ${quoted(zone)} s3 provider=Other endpoint=${quoted(endpoint)} \\`,
        `  access_key_id=${quoted(key)} secret_access_key="$SECRET_ACCESS_KEY" force_path_style=true`,
        `rclone ls ${quoted(`${zone}:${bucket}`)}${authority === null ? '' : ` --ca-cert ${file}`}`,
      ].join('\n'),
    },
    {
      name: 's3cmd',
      text: [
        ...save,
        `s3cmd --access_key=${quoted(key)} --secret_key="$SECRET_ACCESS_KEY" \\`,
        `  --host=${quoted(host)} --host-bucket=${quoted(host)}${authority === null ? '' : ` --ca-certs=${file}`} \\`,
        `  ls ${quoted(`s3://${bucket}`)}`,
      ].join('\n'),
    },
  ]
}
