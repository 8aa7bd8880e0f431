/** The exact format of parameter and header values. A value that is not supported is refused, and not ignored silently.
 *  Pure. */
import type { OperationName } from './operation-table.ts'
import { invalidArgument, invalidRequest, notOffered, S3Refusal } from './refusal.ts'
import type { Headers, Parameters } from './target.ts'

interface Form {
  readonly pattern: RegExp
  readonly refuse: (name: string, value: string) => S3Refusal
}

const argument = (name: string) => invalidArgument(`${name} has not the form that it must have.`)
const form = (pattern: RegExp, refuse: Form['refuse'] = argument): Form => ({ pattern, refuse })
const offered = (pattern: RegExp): Form => form(pattern, (name, value) => notOffered(`${name}: ${value}`))

const UPLOAD_ID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|2~[A-Za-z0-9_-]{1,64})$/
const PART_NUMBER = form(/^(?:[1-9]\d{0,3}|10000)$/)
const COUNT = form(/^\d{1,10}$/)
const EMPTY = form(/^$/)
/** A value with segments `.` or `..` is the prefix of no key. */
const BEGINNING = form(/^(?!\.\.?\/)(?!.*\/\.\.?\/)/s)
const TOKEN = form(/^(?!$)(?!\.\.?\/)(?!.*\/\.\.?\/)/s)

const PARAMETERS: Readonly<Record<string, Form>> = {
  uploadId: form(UPLOAD_ID, () => new S3Refusal(404, 'NoSuchUpload', 'The specified multipart upload does not exist.')),
  'upload-id-marker': form(new RegExp(`^$|${UPLOAD_ID.source}`)),
  versionId: form(/^(?!\.+$)[0-9A-Za-z._-]{1,64}$/),
  'version-id-marker': form(/^(?!\.+$)[0-9A-Za-z._-]{0,64}$/),
  partNumber: PART_NUMBER,
  'list-type': offered(/^2$/),
  'encoding-type': form(/^url$/),
  'max-keys': COUNT,
  'max-parts': COUNT,
  'max-uploads': COUNT,
  'max-buckets': COUNT,
  'part-number-marker': COUNT,
  'fetch-owner': form(/^(?:true|false)$/i),
  prefix: BEGINNING,
  marker: BEGINNING,
  'key-marker': BEGINNING,
  'start-after': BEGINNING,
  'continuation-token': TOKEN,
  ...Object.fromEntries(
    ['versions', 'uploads', 'delete', 'location', 'versioning', 'object-lock', 'tagging', 'cors', 'acl', 'policy']
      .concat(
        'policyStatus',
        'ownershipControls',
        'lifecycle',
        'website',
        'encryption',
        'publicAccessBlock',
        'requestPayment',
        'retention',
        'legal-hold',
        'attributes',
      )
      .map((name) => [name, EMPTY]),
  ),
}

const HEADERS: Readonly<Record<string, Form>> = {
  'x-amz-acl': offered(/^(?:private|bucket-owner-full-control)$/),
  'x-amz-object-ownership': offered(/^BucketOwnerEnforced$/),
  'x-amz-storage-class': form(
    /^STANDARD$/,
    () => new S3Refusal(400, 'InvalidStorageClass', 'The storage class you specified is not valid: it is STANDARD.'),
  ),
  'x-amz-request-payer': offered(/^requester$/),
  'x-amz-bypass-governance-retention': form(/^(?:true|false)$/i),
  'x-amz-bucket-object-lock-enabled': form(/^(?:true|false)$/i),
  'x-amz-metadata-directive': form(/^(?:COPY|REPLACE)$/),
  'x-amz-tagging-directive': form(/^(?:COPY|REPLACE)$/),
  'x-amz-checksum-mode': form(/^ENABLED$/i),
  'x-amz-max-parts': COUNT,
  'x-amz-part-number-marker': COUNT,
  'x-amz-mp-object-size': form(/^\d{1,15}$/),
  'x-amz-decoded-content-length': form(/^\d{1,15}$/),
  'x-amz-content-sha256': form(/^(?:[0-9A-Fa-f]{64}|UNSIGNED-PAYLOAD|STREAMING-[A-Z0-9-]{1,64})$/),
  'content-length': form(/^\d{1,15}$/),
  'content-md5': form(
    /^[A-Za-z0-9+/]{22}==$/,
    () => new S3Refusal(400, 'InvalidDigest', 'The Content-MD5 you specified is not valid.'),
  ),
}

const STREAMING = /^STREAMING-/

/** Throws the Refusal for a value without its format, or one that would be overlooked. */
export function checkValues(name: OperationName, parameters: Parameters, headers: Headers): void {
  for (const [parameter, value] of parameters) check(PARAMETERS, parameter, value)
  for (const [header, value] of headers) check(HEADERS, header, value)
  if (parameters.get('partNumber') !== undefined && headers.has('range') && name !== 'UploadPart')
    throw invalidRequest('Ask for a part or for a range.')
  const isStreamed = STREAMING.test(headers.get('x-amz-content-sha256') ?? '')
  if (isStreamed && name !== 'PutObject' && name !== 'UploadPart')
    throw invalidRequest('x-amz-content-sha256: only objects and parts come in signed chunks.')
  if (headers.has('x-amz-decoded-content-length') && !isStreamed)
    throw invalidRequest('x-amz-decoded-content-length goes with a body in signed chunks.')
}

function check(forms: Readonly<Record<string, Form>>, name: string, value: string): void {
  const wanted = Object.hasOwn(forms, name) ? forms[name] : undefined
  if (wanted !== undefined && !wanted.pattern.test(value)) throw wanted.refuse(name, value)
}
