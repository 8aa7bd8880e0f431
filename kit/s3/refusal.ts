/** An error answer of a store, in S3's terms. */

/** `status` of HTTP, `code` of S3. */
export class S3Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export const accessDenied = (message = 'Access Denied') => new S3Refusal(403, 'AccessDenied', message)
export const slowDown = () => new S3Refusal(503, 'SlowDown', 'Please reduce your request rate.')
export const invalidRequest = (message: string) => new S3Refusal(400, 'InvalidRequest', message)
export const invalidArgument = (message: string) => new S3Refusal(400, 'InvalidArgument', message)
export const malformedXml = (message: string) => new S3Refusal(400, 'MalformedXML', message)
export const missingLength = () =>
  new S3Refusal(411, 'MissingContentLength', 'You must provide the Content-Length HTTP header.')
export const notOffered = (what: string) => new S3Refusal(501, 'NotImplemented', `${what} is not offered.`)
