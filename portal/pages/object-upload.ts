/** Uploads a file to object storage by a signed address: the only request of the portal to another origin. The policy
 *  of its pages names that origin, and the origin accepts nothing else from them. */

/** The object storage has refused the file, or was not reached. */
export class UploadFailed extends Error {
  /** HTTP status; 0 when there was no answer that the page may read. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'UploadFailed'
    this.status = status
  }
}

/** Another object has the name already. */
export const EXISTS = 412

export interface Upload {
  readonly url: string
  readonly file: File
  /** Replaces an object with the same name. */
  readonly isReplacing: boolean
  readonly signal: AbortSignal
  /** Called with the bytes that are sent. */
  readonly onProgress: (bytes: number) => void
}

/** Resolves when the object is stored. Throws UploadFailed, or why it was ended. */
export const upload = ({ url, file, isReplacing, signal, onProgress }: Upload): Promise<void> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    // `fetch` does not report how much is sent
    const request = new XMLHttpRequest()
    request.open('PUT', url)
    request.setRequestHeader('content-type', file.type === '' ? 'application/octet-stream' : file.type)
    if (!isReplacing) request.setRequestHeader('if-none-match', '*')
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded))
    request.addEventListener('load', () => {
      if (request.status < 300) resolve()
      else reject(new UploadFailed(request.status, messageIn(request.responseText)))
    })
    request.addEventListener('error', () => reject(new UploadFailed(0, '')))
    request.addEventListener('abort', () => reject(new UploadFailed(0, '')))
    signal.addEventListener('abort', () => request.abort())
    request.send(file)
  })

const SIGNS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** What the object storage says, for people; empty for another answer. */
export const messageIn = (xml: string): string =>
  (/<Message>([^<]{0,500})<\/Message>/.exec(xml)?.[1] ?? '').replaceAll(
    /&(amp|lt|gt|quot|apos);/g,
    (_whole, name: string) => SIGNS[name] ?? '',
  )
