/** Forbidden addresses in many spellings, for `http://HOST:PORT/`. Only a setting can allow requests to them. */

/** Addresses of this machine. */
export const THIS_MACHINE = words(`
  127.0.0.1 127.0.0.1. 127.1 127.0.1 127.255.255.254 127.000.000.001
  2130706433 017700000001 0x7f000001 0X7F000001 0x7f.1 0177.1 0177.0.0.01 0x7f.0.0x0.01
  0 0.0.0.0 0x0 00000 [::] [0:0:0:0:0:0:0:0] [::0.0.0.0] [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::0.0.0.1]
  [::ffff:127.0.0.1] [::FFFF:7F00:1] [::ffff:7f00:0001] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:0.0.0.0]
  [::127.0.0.1] [::7f00:1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1]
  [2002:7f00:1::] [2002:7f00:1::1] [2001:0:7f00:1::] [2001:0:53aa:64c:0:7a:80ff:fffe]
  １２７.0.0.1 127。0。0。1 127．0．0．1 ①②⑦.0.0.1 %31%32%37.0.0.1 127%2E0%2E0%2E1
  localhost localhost. LOCALHOST LocalHost. a.localhost a.b.localhost. ｌｏｃａｌｈｏｓｔ %6cocalhost
  example.com@127.0.0.1 example.com:80@127.0.0.1 example.com%40x@127.0.0.1 @127.0.0.1 :@127.0.0.1
`);

/** Private, link-local, metadata and other special addresses, at which no test listens. */
export const ELSEWHERE = words(`
  10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.254 192.168.0.1 192.168.257 0xa.1 012.0.0.1 167772161
  [::ffff:10.0.0.1] [64:ff9b::a00:1] [2002:a00:1::] [fc00::1] [fd12:3456:789a::1]
  169.254.0.1 169.254.169.254 169.254.169.254. 2852039166 0xa9fea9fe 0xA9.0xFE.0xA9.0xFE 169.16689662
  0251.0376.0251.0376 [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::a9fe:a9fe] [64:ff9b::a9fe:a9fe]
  [2002:a9fe:a9fe::] 169.254.170.2 169.254.170.23 [fd00:ec2::254] [fd00:ec2::23] [fd20:ce::254]
  100.100.100.200 168.63.129.16 192.0.0.192 [fe80::1] [fe80::a9fe:a9fe] [febf::1] １６９.２５４.１６９.２５４
  255.255.255.255 4294967295 224.0.0.1 239.255.255.250 [ff02::1] [ff0e::1] 240.0.0.1 0.1.2.3
  192.0.2.1 198.51.100.1 203.0.113.1 [2001:db8::1] [3fff::1] 100.64.0.1 100.127.255.254
  198.18.0.1 198.19.255.255 192.0.0.8 192.88.99.1 [100::1] [2001::1] [2001:10::1] [2001:20::1]
  [fec0::1] [4000::1] [5f00::1] [1::1]
`);

/** URLs of this machine that look like URLs of another host. */
export function tricks(port: number): string[] {
  return [
    `http://127.0.0.1:${port}\\@example.com/`,
    `http://127.0.0.1:${port}#@example.com/`,
    `http://127.0.0.1:${port}?@example.com/`,
    `http:\\\\127.0.0.1:${port}\\`,
    `http:////127.0.0.1:${port}/`,
    ` \thttp://127.0.\n0.1:${port}/ `,
    `HTTP://LOCALHOST:${port}`,
  ];
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
