/** Pages for browsers: the documentation of the API and the small pages behind the links of mails. Everything else
 *  belongs to the API. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import express from 'express'
import helmet from 'helmet'
import type { HttpResponse } from '../../../kit/http/exchange.ts'
import type { OpenApiDocument } from '../../../kit/http/openapi.ts'
import { textAsked, textsOf } from '../../../kit/http/openapi-examples.ts'
import { represent } from '../../../kit/http/representation.ts'
import { newUuid, type Random } from '../../../kit/sys/random.ts'

export interface PagesOptions {
  readonly document: OpenApiDocument
  readonly random: Random
  readonly pages: readonly { readonly path: string; readonly html: string; readonly contentSecurityPolicy: string }[]
}

const DOCUMENTATION_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src " +
  "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const ASSETS = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']

const DOCUMENTATION = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>svccloud API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css"><link rel="icon" href="/docs/favicon-32x32.png"></head>
<body><div id="documentation"></div>
<script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body></html>
`
/** The page sends requests with a token, or with the session of this browser, whose CSRF token is in a cookie. */
const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#documentation',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  requestInterceptor(request) {
    const csrf = /(?:^|; )svccloud_csrf=([^;]+)/.exec(document.cookie)
    if (csrf !== null && request.headers.Authorization === undefined)
      request.headers['X-CSRF-Token'] = decodeURIComponent(csrf[1])
    return request
  },
})
`

const describedBy = (text: string): HttpResponse => ({
  status: 200,
  headers: {
    'cache-control': 'no-cache',
    'access-control-allow-origin': '*',
    'content-type': 'application/json; charset=utf-8',
  },
  body: Buffer.from(text),
})

/** Answers requests for pages; true when it answered. */
export function createPages({
  document,
  random,
  pages,
}: PagesOptions): (request: IncomingMessage, response: ServerResponse) => boolean {
  const app = express().disable('x-powered-by').disable('etag')
  const html = pages.map(({ path }) => path)
  const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

  app.use((_request, response, next) => {
    response.setHeader('x-request-id', newUuid(random))
    next()
  })
  app.use(
    helmet({ contentSecurityPolicy: false, strictTransportSecurity: false, referrerPolicy: { policy: 'no-referrer' } }),
  )
  for (const page of pages) {
    app.get(page.path, (_request, response) => {
      response
        .set({ 'content-security-policy': page.contentSecurityPolicy, 'cache-control': 'no-store' })
        .type('html')
        .send(page.html)
    })
  }
  app.get('/', (_request, response) => response.redirect('/docs'))
  app.get(
    '/docs',
    (_request, response) =>
      void response.set('content-security-policy', DOCUMENTATION_POLICY).type('html').send(DOCUMENTATION),
  )
  app.get('/docs/start.js', (_request, response) => void response.type('js').send(START))
  app.get(
    ASSETS.map((name) => `/docs/${name}`),
    (request, response) => response.sendFile(request.path.slice('/docs/'.length), { root: assets, maxAge: '1h' }),
  )

  const { whole, bare } = textsOf(document)
  const described = { whole: describedBy(whole), bare: describedBy(bare) }
  app.get('/openapi.json', async (request, response) => {
    const { status, headers, body } = await represent(
      { header: (name) => request.get(name) },
      described[textAsked(request.url)],
    )
    response.status(status).set(headers).end(body)
  })

  const known = new Set([
    ...html,
    '/',
    '/docs',
    '/docs/start.js',
    '/openapi.json',
    ...ASSETS.map((name) => `/docs/${name}`),
  ])
  return (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    const isPage = (request.method === 'GET' || request.method === 'HEAD') && known.has(path)
    if (isPage) app(request, response)
    return isPage
  }
}
