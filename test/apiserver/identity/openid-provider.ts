/** Two OpenID providers for tests: the real `oidc-provider` on a loopback port with a browser that walks through it,
 *  and a fake one behind `fetch` that says whatever a test wants, for what a real one never does. */
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import Provider from 'oidc-provider'

export const ORIGIN = 'http://127.0.0.1:8080'

export interface Person {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean
  readonly name?: string
}

export interface RealProvider {
  readonly issuer: string
  /** Walks a browser of that person from the authorization address until the provider sends it back to us; answers the
   *  path. */
  visit(location: string, login: string): Promise<string>
  stop(): Promise<void>
}

const CLIENT = {
  client_secret: 'secret-of-the-client-0123456789',
  grant_types: ['authorization_code'],
  response_types: ['code'],
  post_logout_redirect_uris: [`${ORIGIN}/login`],
} as const

/** Clients `rs256` and `es256`, and the people who can sign in by their `sub`. Each login keeps its own cookies. */
export async function startProvider(people: readonly Person[]): Promise<RealProvider> {
  const keys = await Promise.all(
    (['RS256', 'ES256'] as const).map(async (alg) => ({
      ...(await exportJWK((await generateKeyPair(alg, { extractable: true })).privateKey)),
      alg,
      use: 'sig',
      kid: alg,
    })),
  )
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const issuer = `http://127.0.0.1:${address.port}`
  const provider = new Provider(issuer, {
    clients: (['rs256', 'es256'] as const).map((name) => ({
      ...CLIENT,
      grant_types: [...CLIENT.grant_types],
      response_types: [...CLIENT.response_types],
      post_logout_redirect_uris: [...CLIENT.post_logout_redirect_uris],
      client_id: name,
      token_endpoint_auth_method: 'client_secret_post' as const,
      id_token_signed_response_alg: name === 'rs256' ? ('RS256' as const) : ('ES256' as const),
      redirect_uris: [`${ORIGIN}/v1/auth/oidc/callback/${name}`, `${ORIGIN}/v1/auth/oidc/callback`],
    })),
    jwks: { keys },
    cookies: { keys: ['a key for the cookies of tests'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_context, sub) => {
      const person = people.find((known) => known.sub === sub)
      return person && { accountId: sub, claims: () => ({ ...person }) }
    },
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 600, Session: 600, Grant: 600 },
  })
  const callback = provider.callback()

  async function handle(
    request: Parameters<typeof callback>[0],
    response: Parameters<typeof callback>[1],
  ): Promise<void> {
    if (!request.url?.startsWith('/interaction/')) return void callback(request, response)
    const details = await provider.interactionDetails(request, response)
    if (details.prompt.name === 'login')
      return await provider.interactionFinished(request, response, {
        login: { accountId: String(request.headers['x-person']) },
      })
    const grant = new provider.Grant({
      accountId: details.session?.accountId ?? '',
      clientId: String(details.params['client_id']),
    })
    grant.addOIDCScope('openid profile email')
    return await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
  }

  const jars = new Map<string, Map<string, string>>()
  return {
    issuer,
    async visit(location, login) {
      const jar = jars.get(login) ?? new Map<string, string>()
      jars.set(login, jar)
      let next = location
      for (let hop = 0; hop < 15; hop++) {
        if (next.startsWith(ORIGIN)) return next.slice(ORIGIN.length)
        const answer = await fetch(next, {
          redirect: 'manual',
          headers: { 'x-person': login, cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
        })
        for (const cookie of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
          if (value === '') jar.delete(name)
          else jar.set(name, value)
        }
        const to = answer.headers.get('location')
        if (to === null) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`)
        next = new URL(to, next).href
      }
      throw new Error('the provider redirects for ever')
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export interface FakeAnswer {
  /** Changes what the ID token says; it starts right. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly alg?: 'RS256' | 'ES256' | 'PS256'
  /** Signs with a key that the provider does not publish. */
  readonly hasForeignKey?: boolean
  readonly tokenStatus?: number
  readonly discoveryStatus?: number
}

/** A provider behind `fetch`. `issuer` may hold `{tenantid}`. What it answers next is `fake.answer`. */
export async function fakeProvider(issuer: string, clientId: string) {
  const pairs = {
    RS256: await generateKeyPair('RS256'),
    ES256: await generateKeyPair('ES256'),
    PS256: await generateKeyPair('PS256'),
  }
  const foreign = {
    RS256: await generateKeyPair('RS256'),
    ES256: await generateKeyPair('ES256'),
    PS256: await generateKeyPair('PS256'),
  }
  const origin = new URL(issuer).origin
  const fake = {
    answer: {} as FakeAnswer,
    nonce: '',
    fetch: async (url: string): Promise<Response> => {
      const { answer } = fake
      if (url.includes('/.well-known/')) {
        if (answer.discoveryStatus !== undefined) return new Response('', { status: answer.discoveryStatus })
        return Response.json({
          issuer,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          jwks_uri: `${origin}/keys`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256', 'ES256', 'PS256'],
        })
      }
      if (url.endsWith('/keys'))
        return Response.json({
          keys: await Promise.all(
            (['RS256', 'ES256', 'PS256'] as const).map(async (alg) => ({
              ...(await exportJWK(pairs[alg].publicKey)),
              alg,
              kid: alg,
              use: 'sig',
            })),
          ),
        })
      if (answer.tokenStatus !== undefined)
        return Response.json({ error: 'invalid_grant' }, { status: answer.tokenStatus })
      const alg = answer.alg ?? 'RS256'
      const now = Math.floor(Date.now() / 1000)
      const claims = {
        iss: issuer,
        aud: clientId,
        sub: 'fake-person',
        iat: now,
        exp: now + 60,
        nonce: fake.nonce,
        email: 'fake@example.com',
        email_verified: true,
        ...answer.claims,
      }
      const idToken = await new SignJWT(claims)
        .setProtectedHeader({ alg, kid: alg })
        .sign((answer.hasForeignKey === true ? foreign : pairs)[alg].privateKey)
      return Response.json({ access_token: 'x', token_type: 'bearer', expires_in: 60, id_token: idToken })
    },
  }
  return fake
}
