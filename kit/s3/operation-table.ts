/** Every offered operation of S3: the requests that invoke it, its parameters and headers, its effect on stored data,
 *  and its body. A request that is not listed here is refused before anything acts on it. */
import type { DocumentName } from './document.ts'

export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'

/** For suspension and quota: neither ever blocks an operation that `removes`. */
export type OperationClass = 'reads' | 'adds' | 'removes'

export interface OperationRule {
  readonly method: Method
  readonly resource: 'service' | 'bucket' | 'object'
  /** Parameters that make a request this operation; each must be present. */
  readonly selectors?: readonly string[]
  /** Whether it has a copy source. */
  readonly isCopy?: true
  /** Further parameters. */
  readonly parameters?: readonly string[]
  /** Headers with the prefix `x-amz-`, without that prefix, in addition to those that every operation accepts. */
  readonly headers?: readonly string[]
  readonly class: OperationClass
  /** Bytes of an object or a part, a document, or none. */
  readonly body?: 'bytes' | DocumentName
  /** Only for tenants that have moved to another store: the engine of a single host does not support it. */
  readonly isElsewhere?: true
}

const CHECKSUMS = [
  'checksum-algorithm',
  'checksum-type',
  'checksum-crc32',
  'checksum-crc32c',
  'checksum-crc64nvme',
  'checksum-sha1',
  'checksum-sha256',
  'checksum-md5',
  'checksum-sha512',
  'checksum-xxhash3',
  'checksum-xxhash64',
  'checksum-xxhash128',
  'sdk-checksum-algorithm',
]
const STREAMED = ['decoded-content-length', 'trailer']
const LOCKS = ['object-lock-mode', 'object-lock-retain-until-date', 'object-lock-legal-hold']
const STORED = ['acl', 'storage-class', 'tagging', 'website-redirect-location', ...LOCKS]
const SOURCE = [
  'copy-source',
  'copy-source-if-match',
  'copy-source-if-none-match',
  'copy-source-if-modified-since',
  'copy-source-if-unmodified-since',
  'source-expected-bucket-owner',
]
const READ = [
  'versionId',
  'partNumber',
  'response-cache-control',
  'response-content-disposition',
  'response-content-encoding',
  'response-content-language',
  'response-content-type',
  'response-expires',
]
const CONDITIONS = ['if-match-last-modified-time', 'if-match-size']
const VERSION = ['versionId']
const LIST = ['prefix', 'delimiter', 'max-keys', 'encoding-type']

const bucket = { resource: 'bucket' } as const
const object = { resource: 'object' } as const
const reads = { method: 'GET', class: 'reads' } as const
const puts = { method: 'PUT', class: 'adds' } as const
const posts = { method: 'POST', class: 'adds' } as const
const removes = { method: 'DELETE', class: 'removes' } as const
const isElsewhere = true

export const OPERATIONS = {
  ListBuckets: { ...reads, resource: 'service', parameters: ['prefix', 'max-buckets', 'continuation-token'] },

  CreateBucket: {
    ...puts,
    ...bucket,
    body: 'CreateBucketConfiguration',
    headers: ['acl', 'bucket-object-lock-enabled', 'object-ownership', ...CHECKSUMS],
  },
  HeadBucket: { ...bucket, method: 'HEAD', class: 'reads' },
  DeleteBucket: { ...removes, ...bucket },
  ListObjects: { ...reads, ...bucket, parameters: [...LIST, 'marker'] },
  ListObjectsV2: {
    ...reads,
    ...bucket,
    selectors: ['list-type'],
    parameters: [...LIST, 'continuation-token', 'start-after', 'fetch-owner'],
  },
  ListObjectVersions: {
    ...reads,
    ...bucket,
    selectors: ['versions'],
    parameters: [...LIST, 'key-marker', 'version-id-marker'],
  },
  ListMultipartUploads: {
    ...reads,
    ...bucket,
    selectors: ['uploads'],
    parameters: ['prefix', 'delimiter', 'max-uploads', 'encoding-type', 'key-marker', 'upload-id-marker'],
  },
  DeleteObjects: {
    ...bucket,
    method: 'POST',
    class: 'removes',
    selectors: ['delete'],
    body: 'Delete',
    headers: ['bypass-governance-retention', ...CHECKSUMS],
  },
  GetBucketLocation: { ...reads, ...bucket, selectors: ['location'] },
  GetBucketVersioning: { ...reads, ...bucket, selectors: ['versioning'] },
  PutBucketVersioning: {
    ...puts,
    ...bucket,
    selectors: ['versioning'],
    body: 'VersioningConfiguration',
    headers: CHECKSUMS,
  },
  GetObjectLockConfiguration: { ...reads, ...bucket, selectors: ['object-lock'] },
  PutObjectLockConfiguration: {
    ...puts,
    ...bucket,
    selectors: ['object-lock'],
    body: 'ObjectLockConfiguration',
    headers: CHECKSUMS,
  },
  GetBucketTagging: { ...reads, ...bucket, selectors: ['tagging'] },
  PutBucketTagging: { ...puts, ...bucket, selectors: ['tagging'], body: 'Tagging', headers: CHECKSUMS },
  DeleteBucketTagging: { ...removes, ...bucket, selectors: ['tagging'] },
  GetBucketCors: { ...reads, ...bucket, selectors: ['cors'] },
  PutBucketCors: { ...puts, ...bucket, selectors: ['cors'], body: 'CORSConfiguration', headers: CHECKSUMS },
  DeleteBucketCors: { ...removes, ...bucket, selectors: ['cors'] },
  GetBucketAcl: { ...reads, ...bucket, selectors: ['acl'] },
  GetBucketPolicy: { ...reads, ...bucket, selectors: ['policy'] },
  GetBucketPolicyStatus: { ...reads, ...bucket, selectors: ['policyStatus'] },
  GetBucketOwnershipControls: { ...reads, ...bucket, selectors: ['ownershipControls'] },
  GetBucketWebsite: { ...reads, ...bucket, selectors: ['website'] },
  GetBucketEncryption: { ...reads, ...bucket, selectors: ['encryption'], isElsewhere },
  GetPublicAccessBlock: { ...reads, ...bucket, selectors: ['publicAccessBlock'], isElsewhere },
  GetBucketRequestPayment: { ...reads, ...bucket, selectors: ['requestPayment'], isElsewhere },
  GetBucketLifecycleConfiguration: { ...reads, ...bucket, selectors: ['lifecycle'], isElsewhere },
  PutBucketLifecycleConfiguration: {
    ...puts,
    ...bucket,
    selectors: ['lifecycle'],
    body: 'LifecycleConfiguration',
    isElsewhere,
    headers: ['transition-default-minimum-object-size', ...CHECKSUMS],
  },
  DeleteBucketLifecycle: { ...removes, ...bucket, selectors: ['lifecycle'], isElsewhere },

  GetObject: { ...reads, ...object, parameters: READ, headers: ['checksum-mode'] },
  HeadObject: { ...object, method: 'HEAD', class: 'reads', parameters: READ, headers: ['checksum-mode'] },
  PutObject: { ...puts, ...object, body: 'bytes', headers: [...STORED, ...STREAMED, ...CHECKSUMS] },
  CopyObject: {
    ...puts,
    ...object,
    isCopy: true,
    headers: [...SOURCE, ...STORED, 'metadata-directive', 'tagging-directive', ...CHECKSUMS],
  },
  DeleteObject: {
    ...removes,
    ...object,
    parameters: VERSION,
    headers: ['bypass-governance-retention', ...CONDITIONS],
  },
  GetObjectTagging: { ...reads, ...object, selectors: ['tagging'], parameters: VERSION },
  PutObjectTagging: {
    ...puts,
    ...object,
    selectors: ['tagging'],
    parameters: VERSION,
    body: 'Tagging',
    headers: CHECKSUMS,
  },
  DeleteObjectTagging: { ...removes, ...object, selectors: ['tagging'], parameters: VERSION },
  GetObjectRetention: { ...reads, ...object, selectors: ['retention'], parameters: VERSION },
  PutObjectRetention: {
    ...puts,
    ...object,
    selectors: ['retention'],
    parameters: VERSION,
    body: 'Retention',
    headers: ['bypass-governance-retention', ...CHECKSUMS],
  },
  GetObjectLegalHold: { ...reads, ...object, selectors: ['legal-hold'], parameters: VERSION },
  PutObjectLegalHold: {
    ...puts,
    ...object,
    selectors: ['legal-hold'],
    parameters: VERSION,
    body: 'LegalHold',
    headers: CHECKSUMS,
  },
  GetObjectAcl: { ...reads, ...object, selectors: ['acl'], parameters: VERSION },
  GetObjectAttributes: {
    ...reads,
    ...object,
    selectors: ['attributes'],
    parameters: VERSION,
    headers: ['object-attributes', 'max-parts', 'part-number-marker'],
  },
  CreateMultipartUpload: { ...posts, ...object, selectors: ['uploads'], headers: [...STORED, ...CHECKSUMS] },
  UploadPart: {
    ...puts,
    ...object,
    selectors: ['partNumber', 'uploadId'],
    body: 'bytes',
    headers: [...STREAMED, ...CHECKSUMS],
  },
  UploadPartCopy: {
    ...puts,
    ...object,
    selectors: ['partNumber', 'uploadId'],
    isCopy: true,
    headers: [...SOURCE, 'copy-source-range'],
  },
  CompleteMultipartUpload: {
    ...posts,
    ...object,
    selectors: ['uploadId'],
    body: 'CompleteMultipartUpload',
    headers: ['mp-object-size', ...CHECKSUMS],
  },
  AbortMultipartUpload: {
    ...removes,
    ...object,
    selectors: ['uploadId'],
    headers: ['if-match-initiated-time'],
  },
  ListParts: {
    ...reads,
    ...object,
    selectors: ['uploadId'],
    parameters: ['max-parts', 'part-number-marker', 'encoding-type'],
  },
} as const satisfies Record<string, OperationRule>

export type OperationName = keyof typeof OPERATIONS

/** Identification of the signer, and of the client program. */
export const COMMON_HEADERS: readonly string[] = [
  'content-sha256',
  'date',
  'security-token',
  'user-agent',
  'expected-bucket-owner',
  'request-payer',
  'api-version',
  'te',
]
/** Prefix of headers that are stored with an object. */
export const METADATA = 'x-amz-meta-'
/** Parameters of signed addresses (those of version 2 are refused because of them), and parameters that clients add to
 *  such addresses. Names are valid in exactly this letter case. */
export const COMMON_PARAMETERS: readonly string[] = [
  'x-id',
  'X-Amz-Algorithm',
  'X-Amz-Credential',
  'X-Amz-Date',
  'X-Amz-Expires',
  'X-Amz-SignedHeaders',
  'X-Amz-Signature',
  'X-Amz-Content-Sha256',
  'x-amz-user-agent',
  'x-amz-checksum-mode',
  'AWSAccessKeyId',
  'Signature',
  'Expires',
]
/** Signed addresses for writes have these values for a body that the signer has not seen. */
export const CHECKSUM_PARAMETERS: readonly string[] = CHECKSUMS.map((name) => `x-amz-${name}`)
