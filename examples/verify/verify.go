// Verifies a webhook of Flowhook (Standard Webhooks, v1). Copy mistakeIn and isHMAC into your receiver.
//
//	WEBHOOK_SECRET=whsec_… WEBHOOK_ID=… WEBHOOK_TIMESTAMP=… WEBHOOK_SIGNATURE=… go run verify.go < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const toleranceS = 5 * 60

var seconds = regexp.MustCompile(`^[0-9]{1,12}$`)

// mistakeIn returns why a message cannot be trusted, or "" if it can. The body is the received bytes, unparsed.
// Remember the ids that you have handled (at least for the tolerance), and acknowledge repeated ids.
func mistakeIn(id, timestamp, signatures string, body []byte, secret string, now time.Time) string {
	if id == "" || timestamp == "" || signatures == "" {
		return "a webhook- header is missing"
	}
	if !seconds.MatchString(timestamp) {
		return "the timestamp is not a number of seconds"
	}
	sent, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Unix() - sent; age > toleranceS || age < -toleranceS {
		return "the timestamp is too old or too new"
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return "the secret is not base64"
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	for _, signature := range strings.Split(signatures, " ") {
		if text, isV1 := strings.CutPrefix(signature, "v1,"); isV1 && isHMAC(signed, key, text) {
			return ""
		}
	}
	return "no signature matches"
}

func isHMAC(signed, key []byte, text string) bool {
	given, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(signed)
	return hmac.Equal(mac.Sum(nil), given)
}

func main() {
	body, err := io.ReadAll(io.LimitReader(os.Stdin, 256*1024))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	mistake := mistakeIn(os.Getenv("WEBHOOK_ID"), os.Getenv("WEBHOOK_TIMESTAMP"), os.Getenv("WEBHOOK_SIGNATURE"),
		body, os.Getenv("WEBHOOK_SECRET"), time.Now())
	if mistake != "" {
		fmt.Println("refused: " + mistake)
		os.Exit(1)
	}
	fmt.Println("verified")
}
